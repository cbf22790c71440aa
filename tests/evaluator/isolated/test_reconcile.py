"""Effect of the isolated judgement on a verdict: kept, withdrawn with the evidence of both, or flagged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.evaluation import CheckState, Evaluation, Judged, Verdict
from cutegen_nb.core.finding import Exhibit, Finding, Severity
from cutegen_nb.evaluator.catalog.integrity import OUTSIDE
from cutegen_nb.evaluator.isolated.reconcile import IsolatedFinding, reconciled

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


def judgement(evaluation, note="no room"):
    return IsolatedFinding(evaluation=evaluation, note=evaluation.summary if evaluation else note)


@pytest.mark.parametrize(
    ("crash", "found", "verdict", "words"),
    [
        (None, WRONG, Verdict.WRONG_VALUES, "failed in a separate one: It is wrong."),
        (CRASHED, CRASHED, Verdict.CRASHED, "failed in a separate one: It crashed."),
        (CRASHED, TIMED_OUT, Verdict.TIMED_OUT, "failed in a separate one: It took too long."),
        (CRASHED, WRONG, Verdict.WRONG_VALUES, "failed in a separate one: It is wrong."),
        (CRASHED, NONE, Verdict.CRASHED, "failed in a separate one: It crashed."),
    ],
)
def test_a_failure_is_the_verdict_with_its_evidence(crash, found, verdict, words):
    made = reconciled(PASSED, judgement(found), crash and judgement(crash))
    assert made.outcome == Judged(verdict=verdict)
    assert made.summary.endswith(words)
    assert made.exhibits[0].trace == ("inside: Right inside.", "seen outside")
    assert [(item.name, item.state) for item in made.checks] == [(OUTSIDE.name, CheckState.FOUND)]


@pytest.mark.parametrize(
    ("found", "chance"), [(CRASHED, True), (TIMED_OUT, True), (WRONG, False), (RIGHT, False), (NONE, False)]
)
def test_a_crash_and_a_timeout_are_judged_again_and_no_other(found, chance):
    assert judgement(found).may_be_chance is chance


@pytest.mark.parametrize("crash", [CRASHED, TIMED_OUT])
def test_a_crash_that_comes_once_is_a_flag(crash):
    found = reconciled(PASSED, judgement(RIGHT), judgement(crash))
    assert found.passed
    (flag,) = found.findings
    assert (flag.kind, flag.severity) == ("outside-once", Severity.FLAG)
    assert crash.summary in flag.message
    assert found.checks[0].state is CheckState.FOUND


@pytest.mark.parametrize(("by_machine", "flags"), [(False, []), (True, ["outside-not-run"])])
def test_where_none_was_made_the_machines_reasons_are_flags(by_machine, flags):
    found = reconciled(PASSED, replace(judgement(NONE, "the disk is full"), by_machine=by_machine))
    assert found.passed
    assert [item.kind for item in found.findings] == flags
    assert (found.checks[0].state, found.checks[0].note) == (CheckState.NOT_RUN, "the disk is full")
