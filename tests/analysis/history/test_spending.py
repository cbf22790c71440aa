"""What a session has spent: rounds, tokens, dollars, seconds of GPU and people."""

from dataclasses import replace

import pytest

from cutegen_nb.analysis.history import spending
from cutegen_nb.core.round import Action, Decision
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.testing.examples import evolved_session, session_of


@pytest.fixture
def session():
    made = session_of(Relation.FIRST, Relation.FASTER)
    asked = Decision(gate="revision", action=Action.APPROVE, by="person:ada", seconds=30.0)
    first = replace(made.rounds[0], decisions=(asked,), gpu_s=2.0)
    return replace(made, rounds=(first, made.rounds[1]))


def test_replies_and_time_are_added_up(session):
    assert spending.rounds_spent(session) == 2
    assert spending.tokens_spent(session) == 2 * (3 + 4)
    assert spending.wall_seconds_spent(session) == 3.0
    assert spending.dollars_spent(session) == 0.0


def test_a_round_in_which_the_author_failed_does_not_count(session):
    silent = replace(session.rounds[1], attempts=())
    assert spending.rounds_spent(replace(session, rounds=(session.rounds[0], silent))) == 1


def test_only_a_persons_time_at_a_gate_is_a_persons(session):
    assert spending.person_seconds_spent(session) == 30.0


def test_duels_of_a_population_hold_the_gpu_too(session):
    evolved = evolved_session()
    duel = replace(evolved.epochs[0].duels[0], gpu_s=5.0)
    evolved = replace(evolved, epochs=(replace(evolved.epochs[0], duels=(duel,)),))
    assert spending.gpu_seconds_spent(evolved) == 5.0
    assert spending.gpu_seconds_spent(session) == 2.0
