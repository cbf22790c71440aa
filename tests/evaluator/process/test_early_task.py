"""A task that starts early runs once, gives way when it takes too long, and leaves nothing behind."""

from __future__ import annotations

import asyncio

import pytest

from cutegen_nb.evaluator.process.early_task import EarlyTask


class Work:
    """Coroutines that count their starts and ends, and wait for a door that may be shut."""

    def __init__(self):
        self.door = asyncio.Event()
        self.began = self.cancelled = 0

    async def __call__(self):
        self.began += 1
        try:
            await self.door.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self.began


async def a_moment():
    for _ in range(3):
        await asyncio.sleep(0)


def test_it_runs_once_whether_it_began_early_or_not():
    async def run(*, early):
        work = Work()
        task = EarlyTask(work)
        if early:
            task.begin()
            task.begin()
            await a_moment()
        before = work.began
        work.door.set()
        return before, await task.result(), await task.result()

    assert asyncio.run(run(early=True)) == (1, 1, 1)
    assert asyncio.run(run(early=False)) == (0, 1, 1)


def test_one_that_takes_too_long_is_given_up_and_made_again():
    async def run():
        work = Work()
        task = EarlyTask(work)
        task.begin()
        await task.settle(0.0)
        given_up = work.cancelled
        work.door.set()
        return given_up, await task.result()

    assert asyncio.run(run()) == (1, 2)


def test_one_that_has_ended_or_never_began_is_kept():
    async def run():
        work = Work()
        work.door.set()
        task = EarlyTask(work)
        await task.settle(0.0)
        before = work.began
        task.begin()
        await a_moment()
        await task.settle(0.0)
        return before, await task.result(), work.cancelled

    assert asyncio.run(run()) == (0, 1, 0)


def test_its_error_is_raised_where_the_result_is_asked_for_and_not_when_it_is_closed():
    async def fails():
        raise ValueError("why")

    async def run(*, close):
        task = EarlyTask(fails)
        task.begin()
        await task.settle(1.0)
        await (task.close() if close else task.result())

    asyncio.run(run(close=True))
    with pytest.raises(ValueError, match="why"):
        asyncio.run(run(close=False))


def test_closing_it_ends_what_runs():
    async def run():
        work = Work()
        task = EarlyTask(work)
        task.begin()
        await a_moment()
        await task.close()
        await task.close()
        return work.began, work.cancelled

    assert asyncio.run(run()) == (1, 1)


def test_a_caller_that_is_cancelled_while_it_closes_is_cancelled():
    async def stubborn():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.2)  # ending a process takes a while
            raise

    async def run():
        task = EarlyTask(stubborn)
        task.begin()
        await a_moment()
        closing = asyncio.create_task(task.close())
        await a_moment()
        closing.cancel()
        await asyncio.wait({closing})
        return closing.cancelled()

    assert asyncio.run(run())
