"""The best round of a session, through chains, epochs and measurements, and rounds by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.round import Action, Decision, Epoch
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.search.population import MoveKind, Slot
from cutegen_nb.core.session import Plan, Schedule
from cutegen_nb.core.stage import Stage
from cutegen_nb.testing import examples

FIRST, FASTER, CANNOT_TELL = Relation.FIRST, Relation.FASTER, Relation.CANNOT_TELL


def population(*speedups, epochs=()):
    """A first kernel and one epoch whose slots are faster than it by these ratios, or cannot tell (None)."""
    made = examples.session_of(FIRST, *(FASTER for _ in speedups))
    rounds = [made.rounds[0]]
    for number, (item, speedup) in enumerate(zip(made.rounds[1:], speedups, strict=True), start=1):
        relation = CANNOT_TELL if speedup is None else FASTER
        comparison = Comparison(relation=relation, reason=".", speedup=speedup)
        slot = Slot(epoch=1, number=number, move=MoveKind.EXTEND, parents=())
        rounds.append(replace(item, slot=slot, comparison=comparison))
    return replace(made, rounds=tuple(rounds), epochs=epochs)


def digest(session, number):
    return session.rounds[number].candidate.digest


def epoch(session, *members, best=None, number=1):
    digests = tuple(digest(session, one) for one in members)
    return Epoch(number=number, members=digests, best="" if best is None else digest(session, best))


def judged(session, number, *, verdict=Verdict.PASSED, relation=Relation.LESS_WORK, action=Action.APPROVE):
    """One round of the session with another verdict, relation or decision."""
    item = session.rounds[number]
    passed = verdict is Verdict.PASSED
    evaluation = item.evaluation if passed else examples.failed(verdict, "It failed.")
    return replace(
        item,
        attempts=(replace(item.attempts[0], evaluation=evaluation),),
        comparison=Comparison(relation=relation, reason="."),
        decisions=(Decision(gate="revision", action=action, by="policy:auto"),),
    )


def test_in_a_chain_the_best_round_is_the_last_approved_improvement():
    made = examples.session_of(*[FIRST] * 5)
    rounds = (
        made.rounds[0],
        judged(made, 1),
        judged(made, 2, verdict=Verdict.WRONG_VALUES),
        judged(made, 3, action=Action.REJECT),
        judged(made, 4, relation=Relation.SAME_WORK),
    )
    assert replace(made, rounds=rounds).best is rounds[1]
    assert replace(made, rounds=(judged(made, 0, verdict=Verdict.CRASHED),)).best is None


def test_in_a_running_epoch_the_largest_gain_is_the_best_and_not_the_newest():
    session = population(1.2, 3.0, 1.1, None)
    assert session.best is session.rounds[2]
    assert population(None, None).best.number == 0


def test_a_finished_epoch_names_the_best():
    session = population(1.2, 3.0)
    named = replace(session, epochs=(epoch(session, 1, 2, best=1),))
    assert named.best is session.rounds[1]
    fastest = replace(session, epochs=(epoch(session, 2, 1),))
    assert fastest.best is session.rounds[2]


def test_a_champion_that_no_longer_stands_gives_way_to_the_one_before():
    session = population(1.2, 3.0)
    reject = Decision(gate="revision", action=Action.REJECT, by="person:ada")
    rounds = (*session.rounds[:2], replace(session.rounds[2], decisions=(reject,)))
    told = replace(
        session, rounds=rounds, epochs=(epoch(session, 1, best=1), epoch(session, 2, best=2, number=2))
    )
    assert told.best is told.rounds[1]


def test_a_round_after_an_epoch_counts_again():
    session = population(1.2, 3.0)
    slot = Slot(epoch=2, number=1, move=MoveKind.CROSS, parents=())
    faster = Comparison(relation=FASTER, reason=".", speedup=1.05)
    later = replace(examples.finished_round(3, FASTER), slot=slot, comparison=faster)
    told = replace(session, rounds=(*session.rounds, later), epochs=(epoch(session, 2, 1, best=2),))
    assert told.best is told.rounds[3]


def test_a_round_is_found_by_its_source_the_approved_one_before_the_newest():
    session = examples.session_of(FIRST, FASTER, FASTER)
    again = replace(session.rounds[2], attempts=session.rounds[1].attempts)
    reject = Decision(gate="revision", action=Action.REJECT, by="person:ada")
    rejected = replace(again, decisions=(reject,))
    twice = replace(session, rounds=(*session.rounds[:2], again))
    assert twice.round_of(digest(session, 1)) is again
    assert twice.round_of(digest(session, 1), before=2) is session.rounds[1]
    once = replace(session, rounds=(*session.rounds[:2], rejected))
    assert once.round_of(digest(session, 1)) is session.rounds[1]
    assert once.round_of("nothing") is None


@pytest.mark.parametrize(
    ("label", "number"),
    [("r1", 1), ("1", 1), (" r0 ", 0), ("r2", None), ("r9", None), ("x", None), ("", None)],
)
def test_a_passing_round_is_found_by_its_label(label, number):
    session = examples.session_of(FIRST, FASTER, FASTER)
    failed = replace(
        session.rounds[2].attempts[0], evaluation=examples.failed(Verdict.CRASHED, "It crashed.")
    )
    session = replace(session, rounds=(*session.rounds[:2], replace(session.rounds[2], attempts=(failed,))))
    found = session.passing(label)
    assert (found.number if found else None) == number


def test_counters_are_shown_in_the_later_stages_unless_the_schedule_says_never():
    shown = {stage for stage in Stage if Plan().shows_counters(stage)}
    assert shown == {Stage.PROFILE, Stage.TUNE}
    assert not any(Plan(schedule=Schedule.NEVER).shows_counters(stage) for stage in Stage)
    assert not Plan().shows_counters(None)
