"""Facts of a problem are found once, shared by the evaluators of a host, and survive a change of event loop."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator import problem_study
from cutegen_nb.evaluator.evaluator import KernelEvaluator
from cutegen_nb.evaluator.problem_study import KnownProblem, ProblemCache, ProblemStudy
from cutegen_nb.evaluator.timing.compile_cache import CompileCache

PROBLEM = Problem(name="given", source="x = 1\n", form=ProblemForm.KERNELBENCH)
OTHER = Problem(name="given", source="x = 2\n", form=ProblemForm.KERNELBENCH)


def timed(noise):
    return SimpleNamespace(timing=None if noise is None else SimpleNamespace(noise_fraction=noise))


def test_the_first_noise_of_a_known_problem_is_kept():
    cache = ProblemCache()
    cache.keep_noise(PROBLEM, timed(0.02))
    assert cache.noise_fraction(PROBLEM) is None  # not studied yet
    cache.keep(PROBLEM, KnownProblem(facts=None))
    for noise in (None, 0.01, 0.5):
        cache.keep_noise(PROBLEM, timed(noise))
    assert cache.noise_fraction(PROBLEM) == 0.01
    assert cache.noise_fraction(OTHER) is None


def test_one_problem_is_studied_by_one_at_a_time_and_another_beside_it():
    cache, inside, most = ProblemCache(), [], []

    async def study(problem):
        async with cache.alone(problem):
            inside.append(problem.digest)
            most.append((inside.count(problem.digest), len(inside)))
            await asyncio.sleep(0.01)
            inside.remove(problem.digest)

    async def all_of_them():
        await asyncio.gather(*(study(item) for item in (PROBLEM, PROBLEM, OTHER)))

    for _ in range(2):  # each loop has locks of its own
        asyncio.run(all_of_them())
    assert {same for same, _ in most} == {1}
    assert max(together for _, together in most) == 2


class CompilingWorkers:
    """Workers of a GPU that never end a compilation."""

    def __init__(self):
        self.asked = []

    async def choice(self):
        return SimpleNamespace(kind=DeviceKind.GPU)

    async def limits(self):
        return None

    async def run(self, request, *_, **__):
        self.asked.append(request["kind"])
        await asyncio.Event().wait()


def test_facts_do_not_wait_for_the_compiled_reference():
    async def study():
        workers, cache = CompilingWorkers(), ProblemCache()
        cache.keep(PROBLEM, KnownProblem(facts=SimpleNamespace(full=SimpleNamespace(rewrites=()))))
        compiled = CompileCache(workers, wanted=True, folders=cache.folders)
        found = await asyncio.wait_for(
            ProblemStudy(workers, cache, compiled=compiled).known(PROBLEM, lambda _: None), timeout=30
        )
        assert found is cache.find(PROBLEM)
        await asyncio.sleep(0)
        assert workers.asked == ["compile"]
        await compiled.close()

    asyncio.run(study())


@pytest.mark.slow
def test_a_problem_is_studied_once_for_all_evaluators_that_share_a_cache(judge):
    problem = judge.problem("relu")
    first = judge.facts("relu")
    cache = judge.evaluator._cache
    assert cache.find(problem).facts is first
    assert [gate.element for gate in cache.find(problem).tolerances] == [1e-4]
    assert "zeros" in first.admission.refused
    other = KernelEvaluator(device="simulator", cache=cache)
    stages = []

    async def ask():
        try:
            return await other.facts(problem, stages.append)
        finally:
            await other.close()

    assert asyncio.run(ask()) is first
    assert stages == []


@pytest.mark.slow
@pytest.mark.long
def test_a_problem_too_large_to_admit_here_is_judged_without_tolerances_of_its_own(judge, monkeypatch):
    monkeypatch.setattr(problem_study, "_LARGEST_ADMITTED_BYTES", 1)
    given = judge.problem("relu").source.replace("37, 61", "36, 60")
    facts = judge.facts(given)
    assert facts.admission.not_tried == "the problem is too large for this machine"
    assert judge.evaluator._cache.find(judge.problem(given)).tolerances == ()
    assert judge(given, "relu").passed
    assert not judge(given, "zeros").passed


SLOW = """
import time

import torch


def reference(x):
    time.sleep(1.5)
    return torch.relu(x)


def get_inputs():
    return [torch.randn(37, 59)]
"""


@pytest.mark.long
@pytest.mark.slow
def test_wrong_answers_that_take_too_long_to_try_are_told_in_one_sentence():
    evaluator = KernelEvaluator(device="simulator", deadline_s=2.0)
    problem = Problem(name="slow", source=SLOW, form=ProblemForm.FUNCTION, function="reference")

    async def study():
        try:
            return await evaluator.facts(problem, lambda stage: None)
        finally:
            await evaluator.close()

    assert asyncio.run(study()).admission.not_tried == "that took more than 2 s"
