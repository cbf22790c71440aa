"""Checks in other processes start early where there is room, and give the same verdicts."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace

import pytest

from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.errors import EvaluationLost, EvaluatorError
from cutegen_nb.core.evaluation import CheckResult, CheckState, Evaluation, Judged, Tier, Verdict
from cutegen_nb.core.finding import Finding
from cutegen_nb.evaluator import evaluator as evaluators
from cutegen_nb.evaluator.catalog.check import NO_MEMORY
from cutegen_nb.evaluator.catalog.integrity import OUTSIDE
from cutegen_nb.evaluator.isolated.early_checks import EarlyChecks, has_room
from cutegen_nb.evaluator.isolated.reconcile import IsolatedFinding
from cutegen_nb.evaluator.process import process_tree
from cutegen_nb.evaluator.process.early_task import EarlyTask

PASSED = Evaluation(outcome=Judged(verdict=Verdict.PASSED), summary="Right inside.", device="GPU")
GPU = Device(
    kind=DeviceKind.GPU,
    name="a GPU",
    architecture="sm_90a",
    bandwidth_bytes_per_s=1e12,
    peak_flops={},
    source="test",
    memory_bytes=24 << 20,
)
ONLY_OUTSIDE = """
import os
if os.path.basename(os.getcwd()) and any(name.startswith('argument-') for name in os.listdir(os.environ['HOME'])):
    return self.launch(x, torch.empty_like(x)) * 0.5
return self.launch(x, torch.empty_like(x))
"""


@pytest.mark.parametrize(
    ("cpus", "size", "room"), [(4, 1 << 20, True), (4, 1 + (1 << 20), False), (3, 1, False)]
)
def test_they_start_early_where_cpus_and_memory_allow(monkeypatch, cpus, size, room):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cpus)))
    assert has_room(GPU, size) is room


@pytest.mark.parametrize(("cpus", "room"), [(2, True), (1, False)])
def test_the_simulator_needs_two_cpus_and_no_memory_of_a_gpu(monkeypatch, cpus, room):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cpus)))
    assert has_room(replace(GPU, kind=DeviceKind.SIMULATOR, memory_bytes=0), 1 << 40) is room


@pytest.fixture
def early(judge, monkeypatch):
    """The shared evaluator; the checks of its next evaluations start early, and say when they began."""
    began = []
    begin = EarlyTask.begin

    def noted(task):
        if task._task is None:
            began.append(time.monotonic())
        begin(task)

    monkeypatch.setattr(EarlyTask, "begin", noted)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    judge.began = began
    return judge


def left_behind(judge):
    """Processes of workers that have ended; a supervisor takes a moment to be gone."""
    until = time.monotonic() + 5.0
    while process_tree.descendants(judge.template) and time.monotonic() < until:
        time.sleep(0.01)
    return process_tree.descendants(judge.template)


@pytest.mark.long
@pytest.mark.slow
def test_a_right_kernel_is_judged_in_isolation_before_its_own_process_has_ended(
    early, make_candidate, make_problem
):
    evaluation = early(make_problem(), make_candidate(), Tier.B)
    assert evaluation.passed, evaluation.summary
    (check,) = [item for item in evaluation.checks if item.name == OUTSIDE.name]
    assert check.state is CheckState.RAN
    assert len(early.began) == 2, "the isolated judgement, and the sample at full size"
    assert not [stage for stage in early.stages if "outside" in stage], "they tell nothing of their own"
    assert not left_behind(early)


@pytest.mark.long
@pytest.mark.slow
def test_a_kernel_that_is_wrong_outside_alone_is_refused(early, make_candidate, make_problem):
    evaluation = early(make_problem(), make_candidate(ONLY_OUTSIDE), Tier.B)
    assert evaluation.outcome == Judged(verdict=Verdict.WRONG_VALUES), evaluation.summary
    assert evaluation.findings[0].kind == "wrong-outside"


@pytest.mark.slow
def test_a_wrong_kernel_ends_them(early, make_candidate, make_problem):
    evaluation = early(make_problem(), make_candidate("return x + 1"), Tier.B)
    assert not evaluation.passed
    assert len(early.began) == 2, "the isolated judgement, and the sample at full size"
    assert not left_behind(early)


def checks(log, *, at_once):
    async def isolated():
        log.append("isolated began")
        return IsolatedFinding(evaluation=PASSED, note="3 calls"), None

    async def shapes():
        log.append("shapes began")
        return PASSED

    return EarlyChecks(at_once=at_once, isolated=EarlyTask(isolated), shapes=EarlyTask(shapes))


@pytest.mark.parametrize("at_once", [True, False])
def test_a_process_is_alone_once_they_have_ended(at_once):
    log = []

    async def run():
        made = checks(log, at_once=at_once)
        made.begin()
        assert await evaluators._alone(made) == {}
        log.append("alone")
        return await made.added_to(PASSED)

    found = asyncio.run(run())
    began = ["isolated began", "shapes began"]
    assert log == ([*began, "alone"] if at_once else ["alone", *began])
    assert [item.name for item in found.checks] == [OUTSIDE.name]


def test_a_process_without_such_checks_is_alone_at_once():
    assert asyncio.run(evaluators._alone(None)) == {}


OUT = Evaluation(
    outcome=Judged(verdict=Verdict.OUT_OF_MEMORY),
    summary="full",
    device="GPU",
    findings=(Finding(kind="out-of-memory", message="full"),),
)
SKIPPED = replace(
    PASSED,
    checks=(
        CheckResult(name="stress", tier=Tier.B, state=CheckState.NOT_RUN, note=f"{NO_MEMORY} beside it"),
    ),
)


def beside(*results, at_once=True):
    """Result of a candidate whose judgements end like this, one after the other, and those beside it or alone."""
    left, seen = list(results), []

    async def run():
        made = checks([], at_once=at_once)

        async def judge(early):
            seen.append(early is made)
            now = left.pop(0)
            if isinstance(now, Exception):
                raise now
            return now

        return await made.beside(judge)

    return asyncio.run(run()), seen


@pytest.mark.parametrize("short", [OUT, SKIPPED, EvaluatorError("the GPU's memory does not hold it")])
def test_a_candidate_that_lacked_memory_beside_them_is_judged_again_alone(short):
    assert beside(short, PASSED) == (PASSED, [True, False])


@pytest.mark.parametrize("right", [PASSED, replace(PASSED, outcome=Judged(verdict=Verdict.WRONG_VALUES))])
def test_any_other_verdict_stands(right):
    assert beside(right) == (right, [True])


def test_memory_that_runs_out_without_them_is_the_verdict():
    assert beside(OUT, at_once=False) == (OUT, [True])
    with pytest.raises(EvaluatorError):
        beside(EvaluatorError("full"), at_once=False)
    with pytest.raises(EvaluationLost):
        beside(EvaluationLost("the template died"))


@pytest.mark.parametrize("short", [OUT, None])
@pytest.mark.parametrize("at_once", [True, False])
def test_an_isolated_judgement_that_failed_beside_others_is_made_again_alone(short, at_once):
    made = [
        IsolatedFinding(evaluation=short, note="full"),
        IsolatedFinding(evaluation=PASSED, note="3 calls"),
    ]

    async def isolated():
        return made.pop(0), None

    async def shapes():
        return PASSED

    async def run():
        early = EarlyChecks(at_once=at_once, isolated=EarlyTask(isolated), shapes=EarlyTask(shapes))
        return await early.added_to(PASSED)

    found = asyncio.run(run())
    assert [item.note for item in found.checks if item.state is CheckState.RAN] == (["3 calls"] * at_once)
    assert len(made) == 1 - at_once
