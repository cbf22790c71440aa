"""Effect of the isolated judgement on a verdict: kept, withdrawn with the evidence of both, or flagged."""

from __future__ import annotations

import pytest

from cutegen_nb.core.evaluation import CheckState, Evaluation, Judged, Verdict
from cutegen_nb.core.finding import Exhibit, Finding, Severity
from cutegen_nb.evaluator.catalog.integrity import OUTSIDE
from cutegen_nb.evaluator.isolated.reconcile import IsolatedFinding, not_run, reconcile_failure

PASSED = Evaluation(outcome=Judged(verdict=Verdict.PASSED), summary="Right inside.", device="simulator")


def failed(verdict, summary):
    kind = verdict.value.lower()
    exhibit = Exhibit(kind=kind, statement=summary, trace=("seen outside",))
    finding = Finding(kind=kind, message=summary)
    return Evaluation(
        outcome=Judged(verdict=verdict), summary=summary, device="", findings=(finding,), exhibits=(exhibit,)
    )


WRONG, CRASHED = failed(Verdict.WRONG_VALUES, "It is wrong."), failed(Verdict.CRASHED, "It crashed.")
TIMED_OUT = failed(Verdict.TIMED_OUT, "It took too long.")
RIGHT = PASSED
NONE = None


def reconciled(first, second):
    note = second.summary if second else "no room"
    return reconcile_failure(PASSED, first, IsolatedFinding(evaluation=second, note=note))


@pytest.mark.parametrize(
    ("first", "second", "verdict", "words"),
    [
        (WRONG, RIGHT, Verdict.WRONG_VALUES, "in one of two judgements: It is wrong."),
        (WRONG, WRONG, Verdict.WRONG_VALUES, "in both of two judgements: It is wrong."),
        (CRASHED, CRASHED, Verdict.CRASHED, "in both of two judgements: It crashed."),
        (CRASHED, TIMED_OUT, Verdict.CRASHED, "in both of two judgements: It crashed."),
        (CRASHED, WRONG, Verdict.WRONG_VALUES, "in both of two judgements: It is wrong."),
        (CRASHED, NONE, Verdict.CRASHED, "in one of two judgements: It crashed."),
    ],
)
def test_a_failure_is_the_verdict_with_what_both_judgements_saw(first, second, verdict, words):
    found = reconciled(first, second)
    assert found.outcome == Judged(verdict=verdict)
    assert found.summary.endswith(words)
    trace = found.exhibits[0].trace
    assert trace[0] == "inside: Right inside."
    assert trace[1] == f"outside, first: {first.summary}"
    assert trace[2].startswith("outside, second: ")
    assert trace[3] == "seen outside"
    assert [(item.name, item.state) for item in found.checks] == [(OUTSIDE.name, CheckState.FOUND)]


@pytest.mark.parametrize("first", [CRASHED, TIMED_OUT])
def test_a_crash_that_comes_once_is_a_flag(first):
    found = reconciled(first, RIGHT)
    assert found.passed
    (flag,) = found.findings
    assert (flag.kind, flag.severity) == ("outside-once", Severity.FLAG)
    assert first.summary in flag.message


@pytest.mark.parametrize(("by_machine", "flags"), [(False, []), (True, ["outside-not-run"])])
def test_where_none_was_made_the_machines_reasons_are_flags(by_machine, flags):
    found = not_run(PASSED, IsolatedFinding(evaluation=None, note="the disk is full", by_machine=by_machine))
    assert found.passed
    assert [item.kind for item in found.findings] == flags
    assert (found.checks[0].state, found.checks[0].note) == (CheckState.NOT_RUN, "the disk is full")
