"""Sample at full size, taken beside the candidate's own process."""

import asyncio
import os

import pytest

from cutegen_nb.core.estimate import FullSizeSample
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.evaluator.full_size.sampling import EarlySample, FullSizeSampler, deadline_s


class _Sampler:
    """Sampler whose samples end when they are told to."""

    def __init__(self):
        self.begun = self.cancelled = 0
        self.may_end = asyncio.Event()

    async def sample(self, *_):
        self.begun += 1
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return FullSizeSample(missing="none")


@pytest.mark.parametrize(("processors", "begun"), [({0, 1}, 1), ({0}, 0)])
def test_a_sample_begins_early_where_a_second_processor_can_take_it(monkeypatch, processors, begun):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: processors)

    async def taken():
        sampler, told = _Sampler(), []
        early = EarlySample(sampler, None, None, None)
        early.begin()
        await asyncio.sleep(0)
        assert sampler.begun == begun
        sampler.may_end.set()
        assert (await early.result(told.append)).missing == "none"
        assert (sampler.begun, told) == (1, ["calling the candidate at full size"])

    asyncio.run(taken())


@pytest.mark.parametrize(("load", "seconds"), [(0.3, 20.0), (2.0, 20.0), (5.0, 50.0), (40.0, 80.0)])
def test_a_sample_has_more_time_where_processes_share_the_processors(monkeypatch, load, seconds):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    assert deadline_s() == seconds


def test_the_sample_of_a_candidate_that_failed_is_ended(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})

    async def closed():
        sampler = _Sampler()
        early = EarlySample(sampler, None, None, None)
        early.begin()
        await asyncio.sleep(0)
        await early.close()
        assert (sampler.begun, sampler.cancelled) == (1, 1)

    asyncio.run(closed())


@pytest.mark.slow
def test_the_sample_is_taken_while_the_candidate_is_judged(judge, monkeypatch):
    told, begun = [], []
    usual = FullSizeSampler.sample

    async def sample(*arguments):
        begun.append(list(told))
        return await usual(*arguments)

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(FullSizeSampler, "sample", sample)
    asked = judge.evaluator.evaluate(judge.problem("scale"), judge.candidate("scale"), told.append, Tier.A)
    found = asyncio.run(asked)
    assert found.passed
    assert found.full_size.launches
    (before,) = begun
    assert not any(text.startswith("running seed") for text in before)
    assert any(text.startswith("running seed") for text in told)
