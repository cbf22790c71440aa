"""Plan of an epoch: shares of the moves, pairs to cross, a person's strategies and those of earlier sessions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.round import Action, Decision, Round
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.search.knowledge import AppliedStrategy, ProblemKey, Regime, StrategyRecord
from cutegen_nb.core.search.population import MoveKind, Slot
from cutegen_nb.core.session import Plan, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Alignment, Optimisation, Strategy
from cutegen_nb.loop.population.planning import (
    applied_names,
    forbidden,
    plan_epoch,
    quotas,
    recalled_line,
    restart_members,
    strategies_beside,
    written_strategies,
)
from cutegen_nb.testing import examples
from cutegen_nb.testing.landscape import strategies_named

EXTEND, CROSS, INVENT, RECALL, REQUEST = (
    MoveKind.EXTEND, MoveKind.CROSS, MoveKind.INVENT, MoveKind.RECALL, MoveKind.REQUEST,
)  # fmt: skip
MENU = strategies_named(["a", "b", "c", "d", "e", "f"])
GAINS = {"a": 1.5, "b": 1.3, "c": 1.2, "d": 1.1, "e": 1.0, "f": 0.9}


@pytest.fixture(scope="module")
def records() -> tuple[StrategyRecord, ...]:
    """A line of two strategies that won on a like problem."""
    key = ProblemKey(
        workload_class=WorkloadClass.ELEMENTWISE,
        parts=(),
        operators=("relu",),
        dtype="float32",
        regime=Regime.LARGE_STREAM,
    )
    wide = Strategy(name="vectorise", statement="Move 128 bits.")
    return (
        StrategyRecord(
            strategy=wide,
            aligned=Alignment(statement="It moves 128 bits.", by="test", brought=(Optimisation.VECTORS,)),
            line=(AppliedStrategy(name="coalesce", statement="Neighbours touch neighbours."),),
            problem=key,
            problem_digest="p",
            parent_digest="0",
            candidate_digest="1",
            architecture="sm_80",
            device="NVIDIA A100",
            bound=None,
            parent_in_force=(),
            seconds=1e-3,
            speedup=1.5,
            total_speedup=3.0,
            estimated=False,
            session="other",
            session_at="2026-01-01T00:00:00+00:00",
            revision="r2",
            recorded_at="2026-01-01T00:00:00+00:00",
        ),
    )


def moved(move: MoveKind, epoch: int, *, gained: bool) -> Round:
    relation = Relation.FASTER if gained else Relation.SLOWER
    item = examples.finished_round(1)
    return replace(
        item,
        slot=Slot(epoch=epoch, number=1, move=move, parents=()),
        comparison=Comparison(relation=relation, reason="."),
    )


def after(*rounds: Round, epochs: int = 1) -> Session:
    session = examples.evolved_session()
    made = tuple(replace(session.epochs[0], number=number) for number in range(1, epochs + 1))
    return replace(session, rounds=rounds, epochs=made)


@pytest.mark.parametrize(
    ("rounds", "epochs", "slots", "shares"),
    [
        ((), 1, 5, {EXTEND: 2, CROSS: 2, INVENT: 1}),
        ((), 1, 3, {EXTEND: 1, CROSS: 1, INVENT: 1}),
        ((), 1, 1, {EXTEND: 1, CROSS: 0, INVENT: 0}),
        ((), 1, 0, {EXTEND: 0, CROSS: 0, INVENT: 0}),
        # A move that gained gets more, one that failed less.
        (
            [moved(CROSS, 1, gained=True)] * 4 + [moved(EXTEND, 1, gained=False)] * 4,
            1,
            6,
            {EXTEND: 1, CROSS: 4, INVENT: 1},
        ),
        # Two failures do not end a move.
        ([moved(INVENT, 1, gained=False)] * 2, 1, 8, {EXTEND: 4, CROSS: 3, INVENT: 1}),
        # Gains of more than three epochs ago are forgotten.
        ([moved(CROSS, 1, gained=True)] * 4, 4, 5, {EXTEND: 2, CROSS: 2, INVENT: 1}),
        ([moved(CROSS, 2, gained=True)] * 4, 4, 5, {EXTEND: 1, CROSS: 3, INVENT: 1}),
    ],
)
def test_slots_go_to_the_moves_that_gained_in_the_last_epochs(rounds, epochs, slots, shares):
    found = quotas(after(*rounds, epochs=epochs), slots)
    assert found == shares
    assert sum(found.values()) == slots


@pytest.fixture
def grown(evolve, landscape):
    """A population of three after two epochs."""
    return evolve(landscape(GAINS)).run(3, 2)


def test_a_plan_follows_from_the_stored_session_alone(grown):
    again = decode(Session, encode(grown))
    assert plan_epoch(again, MENU) == plan_epoch(grown, MENU)
    slots = [item.slot for item in plan_epoch(grown, MENU)]
    assert [(slot.epoch, slot.number) for slot in slots] == [(3, 1), (3, 2), (3, 3)]


def test_a_slot_that_extends_a_member_has_strategies_that_may_follow_and_no_two_slots_share_one(grown):
    planned = plan_epoch(replace(grown, plan=Plan(population=5)), MENU)
    extended = [item for item in planned if item.slot.move is EXTEND]
    assert extended
    offered = [
        (item.base.number, strategy.name)
        for item in extended
        for strategy in (item.strategy, *(other for other, _ in item.others))
    ]
    assert len(offered) == len(set(offered))
    assert all(len(item.others) <= 2 for item in planned)
    assert not [item for item in planned if item.others and item.slot.move is not EXTEND]


def test_no_pair_is_crossed_twice_and_each_knows_a_strategy_that_the_other_lacks(evolve, landscape):
    session = evolve(landscape(GAINS)).run(4, 6)
    pairs = [frozenset(item.slot.parents) for item in session.rounds if item.slot and item.slot.move is CROSS]
    assert len(pairs) > 3
    assert len(pairs) == len(set(pairs))
    for item in session.rounds:
        if item.slot and item.slot.move is CROSS:
            base, other = item.slot.parents
            assert base != other


def test_no_extension_comes_to_what_a_crossover_beside_it_combines(evolve, landscape):
    session = evolve(landscape(GAINS)).run(3, 1)
    planned = plan_epoch(replace(session, plan=Plan(population=8)), MENU)
    (first, *_) = [item for item in planned if item.slot.move is CROSS]
    names = {item.number: item.strategy.name for item in session.rounds if item.strategy}
    base, other = first.base.number, first.other.number
    extended = {
        (item.base.number, strategy.name)
        for item in planned
        if item.slot.move is EXTEND
        for strategy in (item.strategy, *(one for one, _ in item.others))
    }
    assert extended
    assert not extended & {(base, names[other]), (other, names[base])}


def test_a_crossover_of_a_crossover_counts_what_both_combine(evolve, landscape):
    session = evolve(landscape(GAINS)).run(4, 4)
    child = next(item for item in session.rounds if item.strategy and item.strategy.parents)
    known = {item.strategy.identity: item.strategy.name for item in session.rounds if item.strategy}
    assert {known[identity] for identity in child.strategy.parents} < applied_names(session, child)
    assert child.strategy.name in applied_names(session, child)


def test_the_strategies_beside_a_slot_are_those_that_the_plan_knows(grown):
    planned = plan_epoch(grown, MENU)
    names = [item.strategy.name for item in planned if item.strategy]
    assert names
    for item in planned:
        own = item.strategy.name if item.strategy else None
        assert strategies_beside(planned, item) == tuple(name for name in names if name != own)


def test_an_author_that_states_no_strategy_is_not_asked_to_invent_again(evolve, landscape):
    session = evolve(landscape(GAINS)).run(3, 4)
    invented = [item for item in session.rounds if item.slot and item.slot.move is INVENT]
    assert len(invented) == 1
    assert invented[0].note == "the landscape holds no further strategy"
    assert all(item.slot.move is not INVENT for item in plan_epoch(session, MENU))


def test_an_author_that_invents_is_asked_on(evolve, landscape):
    own = tuple(f"own-{number}" for number in range(5))
    session = evolve(landscape({**GAINS, **dict.fromkeys(own, 1.1)}, invents=own)).run(3, 5)
    invented = [item for item in session.rounds if item.slot and item.slot.move is INVENT]
    assert [item.title for item in invented] == list(own[: len(invented)])
    assert len(invented) > 1
    assert all(item.strategy.source == "model" for item in invented)


def test_a_session_without_a_member_has_no_plan():
    assert plan_epoch(replace(examples.evolved_session(), rounds=(), epochs=()), MENU) == ()


def test_forbidden_strategies_are_those_of_all_gates_each_once():
    session = examples.evolved_session()
    made = [Decision(gate="epoch", action=Action.FORBID, by="person:ada", edited=name) for name in "bab"]
    session = replace(session, epochs=(replace(session.epochs[0], decisions=tuple(made)),))
    new = [Decision(gate="epoch", action=Action.FORBID, by="person:ada", edited="c")]
    assert forbidden(session) == ("b", "a")
    assert forbidden(session, new) == ("b", "a", "c")
    offered = [item.strategy.name for item in plan_epoch(session, MENU) if item.slot.move is EXTEND]
    assert offered
    assert not {"a", "b"} & set(offered)


def test_a_persons_strategies_are_those_that_were_written():
    made = [
        Decision(gate="epoch", action=Action.REQUEST, by="person:ada", edited=" one : Do : it. "),
        Decision(gate="epoch", action=Action.PIN, by="person:ada", edited="r1"),
    ]
    (found,) = written_strategies(made)
    assert (found.name, found.statement, found.source) == ("one", "Do : it.", "person")


def test_a_line_that_won_on_a_like_problem_has_the_first_slot_of_the_first_epoch(records):
    started = replace(examples.session_of(Relation.FIRST), plan=Plan(population=3))
    first, *rest = plan_epoch(started, MENU, records)
    assert (first.slot.move, first.slot.number) == (RECALL, 1)
    assert first.strategy.name == "recall-best-line"
    assert first.strategy.source == "history"
    assert first.strategy.statement == (
        "On a like problem (element-wise, large stream) these strategies together ended 3.00× its first kernel "
        "(measured, NVIDIA A100). Carry out those that fit here, in one step: "
        "(1) coalesce: Neighbours touch neighbours. (2) vectorise: It moves 128 bits."
    )
    assert first.strategy.parents == ("coalesce", "vectorise")
    assert first.strategy.absent == (Optimisation.VECTORS,)
    assert [item.slot.move for item in rest] == [EXTEND, EXTEND]
    assert recalled_line(started, ()) is None
    assert all(item.slot.move is EXTEND for item in plan_epoch(started, MENU))
    later = replace(examples.evolved_session(), plan=Plan(population=3))
    assert all(item.slot.move is not RECALL for item in plan_epoch(later, MENU, records))


@pytest.mark.parametrize(("total", "recalled"), [(1.04, False), (1.05, True)])
def test_a_line_that_gained_next_to_nothing_is_not_recalled(records, total, recalled):
    weak = (replace(records[0], total_speedup=total),)
    assert (recalled_line(examples.session_of(Relation.FIRST), weak) is not None) is recalled


def test_an_estimated_line_is_called_an_estimate(records):
    estimated = (replace(records[0], estimated=True, device="NVIDIA H200"),)
    found = recalled_line(examples.session_of(Relation.FIRST), estimated)
    assert "(an estimate, NVIDIA H200)" in found.statement


def test_a_restart_keeps_the_fastest_the_pinned_and_the_first_kernel():
    session = examples.evolved_session()
    assert [member.item.number for member in restart_members(session)] == [2, 0]
    pinned = Decision(gate="epoch", action=Action.PIN, by="person:ada", edited="r1")
    session = replace(session, epochs=(replace(session.epochs[0], decisions=(pinned,)),))
    assert {member.item.number for member in restart_members(session)} == {0, 1, 2}


def test_the_stage_of_a_slot_is_that_of_its_strategy():
    menu = (
        Strategy(name="numbers", statement="Choose the threads.", stage=Stage.TUNE),
        Strategy(name="tiles", statement="Cut tiles."),
    )
    started = replace(examples.session_of(Relation.FIRST), plan=Plan(population=2))
    planned = plan_epoch(started, menu)
    assert [(item.strategy.name, item.stage) for item in planned] == [
        ("tiles", Stage.STRUCTURE),
        ("numbers", Stage.TUNE),
    ]
