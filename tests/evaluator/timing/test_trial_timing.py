"""Timing as a stage of a trial: what was measured goes into the evidence, and may end the trial."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cutegen_nb.core.evaluation import CheckState, Judged, NotJudged, NotJudgedReason, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.timing import BaselineTiming, Timing
from cutegen_nb.evaluator.catalog.work import FLOOR, RECHECKED, TRACE
from cutegen_nb.evaluator.timing import trial_timing
from cutegen_nb.evaluator.timing.trial_timing import clock, quick_timing
from cutegen_nb.evaluator.trial.evidence import Evidence, MeasuredSpeed, Rival
from cutegen_nb.evaluator.trial.observations import History


def timing(against_rival=None):
    rival = None
    if against_rival is not None:
        rival = BaselineTiming(
            name="best before",
            median_ms=1.0,
            speedup=against_rival,
            speedup_low=against_rival,
            speedup_high=against_rival,
        )
    return Timing(median_ms=0.5, samples_ms=(0.5, 0.5), baselines=(), bandwidth_bytes_per_s=4e12, rival=rival)


def trial(measured, tmp_path, rival=None, changed=()):
    asked = []

    def time_it(task, *, quick=False):
        asked.append((task, quick))
        return measured

    problem = SimpleNamespace(library=())
    return SimpleNamespace(
        state=Evidence(),
        task=SimpleNamespace(
            time_it=None if measured is None else time_it,
            loaded=SimpleNamespace(problem=problem, init_inputs=list),
            rival=rival,
            folder=tmp_path,
        ),
        candidate=lambda x: x,
        reference=lambda x: x,
        ground=SimpleNamespace(device="cpu"),
        path=tmp_path / "candidate.py",
        harness=SimpleNamespace(changed=lambda: changed, now=str),
        history=History(),
        asked=asked,
    )


def test_on_the_simulator_nothing_is_timed(tmp_path):
    made = trial(None, tmp_path)
    assert clock(made, [1], lambda _: None) is None
    assert (made.state.timing, made.state.results) == (None, {})


def test_times_that_are_believed_are_kept_with_their_flags(tmp_path):
    flag = Finding(kind="no-baseline", message="no compiler", severity=Severity.FLAG)
    made = trial(MeasuredSpeed(timing=timing(), findings=(flag,)), tmp_path)
    assert clock(made, [1], lambda _: None) is None
    assert made.state.timing.median_ms == 0.5
    assert made.state.findings == [flag]
    assert {name.name: made.state.results[name.name].state for name in (TRACE, RECHECKED, FLOOR)} == {
        check.name: CheckState.RAN for check in (TRACE, RECHECKED, FLOOR)
    }


def test_a_flag_of_both_measurements_is_told_once_with_the_second_one_s_figures(tmp_path):
    flags = [
        Finding(kind=kind, message=message, severity=Severity.FLAG)
        for kind, message in (
            ("fewer-operations", "0.1 ms"),
            ("threads", "2 run"),
            ("fewer-operations", "0.2 ms"),
        )
    ]
    own = Finding(kind="fewer-operations", message="of another stage", severity=Severity.FLAG)
    made = trial(MeasuredSpeed(timing=timing(), findings=tuple(flags[:2])), tmp_path)
    made.state.findings.append(own)
    quick_timing(made, [1], lambda _: None)
    made.task.time_it = lambda *_, **__: MeasuredSpeed(timing=timing(), findings=(flags[2],))
    clock(made, [1], lambda _: None)
    assert made.state.findings == [own, flags[1], flags[2]]


@pytest.mark.parametrize(
    ("kind", "outcome", "check", "exhibits"),
    [
        ("outside-the-clock", Judged(verdict=Verdict.CHEATED), TRACE, 1),
        ("library-kernels", Judged(verdict=Verdict.NOT_OWN_WORK), TRACE, 1),
        ("wrong-when-timed", Judged(verdict=Verdict.WRONG_VALUES), RECHECKED, 0),
        ("stale-result", Judged(verdict=Verdict.WRONG_VALUES), RECHECKED, 0),
        ("above-roof", NotJudged(reason=NotJudgedReason.ABOVE_ROOF), FLOOR, 0),
        ("times-disagree", NotJudged(reason=NotJudgedReason.TIMES_DISAGREE), TRACE, 0),
    ],
)
def test_refused_times_end_the_trial_with_their_check_and_evidence(tmp_path, kind, outcome, check, exhibits):
    finding = Finding(kind=kind, message="the reason")
    made = trial(MeasuredSpeed(timing=timing(), findings=(finding,), outcome=outcome), tmp_path)
    assert clock(made, [1], lambda _: None) == (outcome, "the reason")
    assert made.state.results[check.name].state is CheckState.FOUND
    assert len(made.state.exhibits) == exhibits
    if exhibits:
        assert made.state.exhibits[0].trace == ("the reason", "median of 2 calls: 0.5 ms")


def test_a_harness_replaced_while_timing_comes_before_the_times(tmp_path):
    made = trial(MeasuredSpeed(timing=timing()), tmp_path, changed=("torch.cuda.Event",))
    ended = clock(made, [1], lambda _: None)
    assert ended[0] == Judged(verdict=Verdict.CHEATED)
    assert "replaced torch.cuda.Event" in ended[1]


@pytest.mark.parametrize(("speedup", "no_faster"), [(0.9, True), (1.0, True), (1.1, False), (None, False)])
def test_a_quick_look_tells_who_is_no_faster_than_the_best_before(tmp_path, speedup, no_faster):
    made = trial(MeasuredSpeed(timing=timing(speedup)), tmp_path)
    assert quick_timing(made, [1], lambda _: None) is None
    assert made.state.no_faster is no_faster
    assert [quick for _, quick in made.asked] == [True]


def test_inputs_that_are_timed_have_other_seeds_than_those_that_were_compared(tmp_path):
    made = trial(MeasuredSpeed(timing=timing()), tmp_path)
    clock(made, [11, 12], lambda _: None)
    assert made.asked[0][0].seed not in {11, 12}


def test_a_best_before_that_cannot_be_built_is_a_reason_and_no_fault(tmp_path):
    rival = Rival(source="raise ValueError('it needs a file')\n", digest="d" * 64)
    made = trial(MeasuredSpeed(timing=timing()), tmp_path, rival=rival)
    clock(made, [1], lambda _: None)
    task = made.asked[0][0]
    assert task.rival_digest == rival.digest
    assert "it needs a file" in task.rival()


def test_the_best_before_is_built_once_for_both_measurements(tmp_path, monkeypatch):
    built = []
    monkeypatch.setattr(trial_timing, "_rival", lambda *_: built.append(1) or (lambda x: x))
    made = trial(MeasuredSpeed(timing=timing()), tmp_path, rival=Rival(source="", digest="d" * 64))
    quick_timing(made, [1], lambda _: None)
    clock(made, [1], lambda _: None)
    first, second = (task.rival() for task, _ in made.asked)
    assert first is second
    assert built == [1]
