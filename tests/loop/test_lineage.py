"""Lineage of revisions: parents, lines of strategies, branches, and counters that came later."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.profile import Profile, ProfileSource
from cutegen_nb.core.round import Action, Attempt, Decision, EndedStrategy, Prompt, Round, StrategyEnd
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.session import Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.lineage import (
    ended_on,
    line_of,
    parent_digest,
    parent_evaluation,
    parent_of_next,
    since_branch,
    tried_on,
)
from cutegen_nb.testing import examples

ORDER = {"better": Relation.LESS_WORK, "worse": Relation.MORE_WORK, "first": Relation.FIRST}


def round_of(session: Session, name: str, parent: int | None, outcome: str, **others: object) -> Session:
    """Session with one more round: its strategy, the round it starts from, and what came of it."""
    number = len(session.rounds)
    base = session.rounds[parent].candidate if parent is not None else None
    source = str(others.pop("source", f"r{number}"))
    strategy = Strategy(name=name, statement=".", parents=tuple(others.pop("combines", ()))) if base else None
    prompt = Prompt(system="", user="", digest="", strategy=strategy, parent=base)
    over = tuple(
        Attempt(
            purpose="optimise",
            prompt=prompt,
            reply=None,
            ended=EndedStrategy(strategy=Strategy(name=other, statement="."), end=end, reason="."),
        )
        for other, end in others.pop("ended", ())
    )
    attempt = Attempt(
        purpose="optimise",
        prompt=prompt,
        reply=None,
        candidate=Candidate(source=examples.kernel_source(source), author="test"),
        evaluation=examples.passed(100),
    )
    made = Round(
        number=number,
        stage=Stage.STRUCTURE,
        strategy=strategy,
        attempts=(*over, attempt),
        comparison=Comparison(relation=ORDER[outcome], reason="."),
        decisions=(
            Decision(
                gate="revision",
                action=Action.REJECT if outcome == "worse" else Action.APPROVE,
                by="policy:auto",
            ),
        ),
        started_at="",
        seconds=1.0,
    )
    return replace(session, rounds=(*session.rounds, replace(made, **others)))


@pytest.fixture
def grown() -> Session:
    """r0; r1 and r3 are better; r2 was rejected."""
    session = replace(examples.session_of(), rounds=())
    session = round_of(session, "", None, "first")
    session = round_of(session, "a", 0, "better")
    session = round_of(session, "b", 1, "worse")
    return round_of(session, "c", 1, "better", combines=("x", "y"))


def branched(session: Session, label: str) -> Session:
    last = session.rounds[-1]
    choice = Decision(gate="revision", action=Action.BRANCH, by="person:ada", edited=label)
    return replace(session, rounds=(*session.rounds[:-1], replace(last, decisions=(choice,))))


def test_a_line_goes_from_a_revision_back_to_the_first_kernel(grown):
    assert [item.number for item in line_of(grown, grown.rounds[3])] == [3, 1, 0]
    assert [item.number for item in line_of(grown, grown.rounds[2])] == [2, 1, 0]
    assert parent_digest(grown.rounds[0]) == ""


def test_what_was_tried_on_a_revision_or_carried_out_before_it_is_not_tried_again(grown):
    assert tried_on(grown, grown.rounds[1]) == {"a", "b", "c"}
    # A crossover carries out both strategies that it combines.
    assert tried_on(grown, grown.rounds[3]) == {"a", "c", "x", "y"}
    assert tried_on(grown, grown.rounds[0]) == {"a"}


def test_a_strategy_found_done_is_over_for_descendants_and_an_impossible_one_only_here(grown):
    ended = (("done", StrategyEnd.ALREADY_DONE), ("unfit", StrategyEnd.CANNOT_APPLY))
    session = round_of(grown, "d", 1, "worse", ended=ended)
    assert [item.strategy.name for item in ended_on(session, session.rounds[1])] == ["done", "unfit"]
    assert [item.strategy.name for item in ended_on(session, session.rounds[3])] == ["done"]
    assert ended_on(session, session.rounds[0]) == ()
    assert {"done", "unfit"} <= tried_on(session, session.rounds[1])
    assert "unfit" not in tried_on(session, session.rounds[3])


def test_the_next_round_starts_from_the_best_or_from_the_revision_that_a_person_chose(grown):
    assert parent_of_next(grown).number == 3
    assert parent_of_next(branched(grown, "r1")).number == 1
    assert parent_of_next(branched(grown, "r2")).number == 2, "a rejected revision that passed can be chosen"
    assert parent_of_next(replace(grown, rounds=())) is None


def test_a_choice_holds_for_the_next_round_alone_and_a_new_stage_begins_after_it(grown):
    session = branched(grown, "r0")
    assert since_branch(session) == ()
    later = round_of(session, "e", 0, "worse")
    assert [item.number for item in since_branch(later)] == [4]
    assert parent_of_next(later).number == 1, "the branching round was not approved"
    assert since_branch(grown) == grown.rounds


def test_a_kernel_that_was_written_again_and_rejected_is_not_named_as_the_parent_of_later_rounds(grown):
    session = round_of(grown, "f", 3, "worse", source="r1")
    again, original = session.rounds[4], session.rounds[1]
    assert again.candidate.digest == original.candidate.digest
    session = round_of(session, "g", 1, "worse")
    parent = session.round_of(parent_digest(session.rounds[5]), before=5)
    assert parent.number == 1


def test_counters_that_a_later_round_took_of_a_kernel_belong_to_it(grown):
    bare = grown.rounds[3].attempts[-1]
    without = replace(bare, evaluation=replace(bare.evaluation, profile=None))
    session = replace(grown, rounds=(*grown.rounds[:3], replace(grown.rounds[3], attempts=(without,))))
    assert parent_evaluation(session, session.rounds[3]).profile is None
    taken = Profile(source=ProfileSource.NSIGHT, device="NVIDIA H200", launches=())
    later = round_of(session, "h", 3, "worse", parent_profile=taken)
    assert parent_evaluation(later, later.rounds[3]).profile is taken
    # Counters of its own are kept.
    assert parent_evaluation(later, later.rounds[1]) is later.rounds[1].evaluation
