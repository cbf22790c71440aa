"""A population replays to the same rounds and epochs, from its store and from a bundle."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cutegen_nb.authors.replay import RecordedEvaluations, ReplayAuthor
from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.round import Action
from cutegen_nb.loop.replaying import RecordedDecisions, replay_session
from cutegen_nb.store.bundle import read_bundle, write_bundle
from cutegen_nb.store.sqlite import SqliteStore

GAINS = {"a": 1.5, "b": 1.49, "c": 0.8, "d": 1.2, "e": 1.1, "own": 1.3}
DECISIONS = {
    1: [(Action.PIN, "r0"), (Action.REQUEST, "mine: Do it my way.")],
    2: [(Action.FORBID, "e"), (Action.BUDGET, "epochs=5"), (Action.PIN, "r99")],
}


@pytest.fixture
def recorded(evolve, landscape, at_epochs, tmp_path):
    """A population with decisions of a person, a duel, an invention and a slot that states nothing, as a bundle."""
    evolution = evolve(landscape(GAINS, invents=("own",)), approver=at_epochs(DECISIONS))
    session = evolution.run(3, 9)
    write_bundle(session, tmp_path / "relu.cutegen", {"python": "3.11"})
    found = read_bundle(tmp_path / "relu.cutegen")
    assert found == session
    return evolution, found


def play_again(evolution, recorded, **others):
    seen = []
    effects = replace(
        evolution.effects,
        author=ReplayAuthor(recorded),
        evaluator=RecordedEvaluations(recorded),
        approver=RecordedDecisions(recorded),
        **others,
    )
    with SqliteStore(evolution.folder) as store:
        again = asyncio.run(
            replay_session(recorded, effects, store, "again", on_epoch=lambda _, epoch: seen.append(epoch))
        )
        assert store.load("again") == again
    return again, seen


def facts_of(session):
    return [
        (
            item.number,
            item.slot,
            item.stage,
            item.strategy,
            item.aligned,
            item.note,
            item.comparison,
            [(attempt.purpose, attempt.candidate and attempt.candidate.digest) for attempt in item.attempts],
            [(decision.gate, decision.action) for decision in item.decisions],
        )
        for item in session.rounds
    ]


def test_a_population_replays_to_the_same_rounds_epochs_and_best(recorded):
    evolution, session = recorded
    assert any(epoch.duels for epoch in session.epochs)
    assert any(item.title == "no strategy stated" for item in session.rounds)
    again, seen = play_again(evolution, session)
    assert [(*one[:4], *one[5:]) for one in facts_of(again)] == [
        (*one[:4], *one[5:]) for one in facts_of(session)
    ]
    assert again.epochs == session.epochs
    assert tuple(seen) == session.epochs
    assert again.stopped == session.stopped
    assert again.best.number == session.best.number
    assert [item.aligned and item.aligned.statement for item in again.rounds] == [
        item.aligned and item.aligned.statement for item in session.rounds
    ]


def test_a_replay_stops_where_it_departs_from_the_recording(recorded):
    evolution, session = recorded
    other = session.rounds[5]
    place = next(place for place, attempt in enumerate(other.attempts) if attempt.candidate)
    attempts = list(other.attempts)
    attempts[place] = replace(
        attempts[place], reply=replace(attempts[place].reply, text="no code any more, in three words")
    )
    changed = replace(
        session, rounds=(*session.rounds[:5], replace(other, attempts=tuple(attempts)), *session.rounds[6:])
    )
    again, _ = play_again(evolution, changed)
    assert len(again.rounds) == 6
    assert again.stopped.startswith("the replay differs from relu at r5")
    assert len(again.epochs) == 1


def test_a_replay_of_a_kernel_that_no_round_has_is_refused(recorded):
    evolution, session = recorded
    second = session.rounds[1]
    lost = replace(
        session, rounds=(session.rounds[0], replace(second, slot=replace(second.slot, parents=("0" * 64,))))
    )
    with pytest.raises(StoreError, match="r1 of again starts from a kernel that no round has"):
        play_again(evolution, lost)
