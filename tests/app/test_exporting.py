"""A kernel is written only when the last tier has not found it wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.app.exporting import export
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import Evaluation, Judged, NotJudged, NotJudgedReason, Verdict
from cutegen_nb.core.finding import Exhibit
from cutegen_nb.core.round import Action, Attempt, Decision, Prompt, Round
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.testing import examples


@pytest.fixture
def session():
    """One approved revision."""
    attempt = Attempt(
        purpose="generate",
        prompt=Prompt(system="", user="", digest="d"),
        reply=None,
        candidate=Candidate(source="class ModelNew: pass\n", author="test"),
        evaluation=examples.passed(10),
    )
    first = Round(
        number=0,
        stage=Stage.STRUCTURE,
        strategy=None,
        attempts=(attempt,),
        comparison=Comparison(relation=Relation.FIRST, reason="The first."),
        decisions=(Decision(gate="revision", action=Action.APPROVE, by="policy:auto"),),
        started_at="2026-01-01T00:00:00+00:00",
        seconds=1.0,
    )
    return Session(
        name="relu",
        problem=examples.relu_problem(),
        facts=examples.relu_facts(),
        device=examples.simulated_device(),
        author="test",
        budget=Budget(rounds=1),
        created_at="2026-01-01T00:00:00+00:00",
        rounds=(first,),
    )


def _found(outcome):
    return lambda candidate: Evaluation(outcome=outcome, summary="Wrong in row 3.", device="A100 (simulated)")


def test_a_kernel_that_the_last_tier_finds_wrong_is_not_written(session, tmp_path):
    target = tmp_path / "k.py"
    with pytest.raises(UsageError, match=r"WRONG_VALUES: Wrong in row 3.*--unchecked"):
        export(session, str(target), _found(Judged(verdict=Verdict.WRONG_VALUES)))
    assert not target.exists()


def test_a_file_that_was_there_before_stays_as_it_was(session, tmp_path):
    target = tmp_path / "k.py"
    target.write_text("mine")
    with pytest.raises(UsageError):
        export(session, str(target), _found(Judged(verdict=Verdict.RACE)))
    assert target.read_text() == "mine"


def test_what_cannot_be_judged_is_written_and_says_so(session, tmp_path):
    target = tmp_path / "k.py"
    said = export(session, str(target), _found(NotJudged(reason=NotJudgedReason.UNSUPPORTED_OPCODE)))
    assert "tier C gave not judged: UNSUPPORTED_OPCODE" in said
    assert "UNSUPPORTED_OPCODE" in target.read_text().splitlines()[0]


def test_an_overruled_kernel_is_written_with_what_the_last_tier_said(session, tmp_path):
    best = session.best
    evidence = (Exhibit(kind="torch-compute", statement="aten.relu ran inside forward."),)
    cheated = replace(best.evaluation, outcome=Judged(verdict=Verdict.CHEATED), exhibits=evidence)
    (first,) = session.rounds
    overruled = replace(
        first,
        attempts=(replace(first.attempts[0], evaluation=cheated),),
        decisions=(
            Decision(gate="revision", action=Action.OVERRULE, by="person:me", reason="It is honest."),
        ),
    )
    said = export(replace(session, rounds=(overruled,)), str(tmp_path / "k.py"), lambda candidate: cheated)
    assert "overruled" in said
