"""The event loop of a notebook runs in a thread of its own, and shares a store between sessions."""

import asyncio

import pytest

from cutegen_nb.core.errors import StoreError
from cutegen_nb.notebook.engine import EventLoopThread
from cutegen_nb.wiring import Settings


@pytest.fixture
def engine():
    made = EventLoopThread()
    yield made
    made.close()


def test_a_result_and_an_error_come_to_the_caller(engine):
    async def work(value):
        return 1 // value

    assert engine.result(work(1)) == 1
    with pytest.raises(ZeroDivisionError):
        engine.result(work(0))


def test_the_last_lease_closes_the_store(engine, tmp_path):
    settings = Settings(folder=tmp_path)
    first, second = engine.result(engine.lease(settings)), engine.result(engine.lease(settings))
    assert first is second
    other = EventLoopThread()
    engine.result(engine.give_back(settings))
    with pytest.raises(StoreError):
        other.result(other.lease(settings))
    engine.result(engine.give_back(settings))
    other.result(other.lease(settings))
    other.result(other.give_back(settings))
    other.close()


def test_closing_cancels_what_runs(engine):
    future = engine.submit(asyncio.sleep(3600))
    engine.close()
    assert future.cancelled()
    engine.close()
