"""Example values are whole: sessions with a best round, populations with members that rounds hold."""

from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.testing.examples import evolved_session, finished_round, relu_facts, session_of


def test_each_round_has_a_source_of_its_own_and_the_last_gain_is_the_best():
    session = session_of(Relation.FIRST, Relation.FASTER, Relation.SLOWER)
    assert len({item.candidate.digest for item in session.rounds}) == 3
    assert session.best.number == 1


def test_members_of_the_population_are_kernels_of_its_rounds():
    session = evolved_session()
    kernels = {item.candidate.digest for item in session.rounds if item.candidate}
    assert set(session.epochs[0].members) <= kernels
    assert [item.slot.move.value for item in session.rounds[1:]] == ["extend", "request", "invent"]


def test_the_scaled_problem_is_smaller_and_a_round_is_approved():
    facts = relu_facts()
    assert facts.scaled.flops < facts.full.flops
    assert finished_round(0).approved
