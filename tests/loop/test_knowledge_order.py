"""Order of strategies that records of like problems suggest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.problem.problem_key import problem_key
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.search.knowledge import StrategyRecord
from cutegen_nb.core.strategy import Alignment, Condition, Optimisation, Strategy
from cutegen_nb.loop.knowledge_order import chosen, earlier_records, ordered
from cutegen_nb.testing import examples

SESSION = examples.session_of(Relation.FIRST)
PARENT = SESSION.rounds[0]


def strategy(name: str) -> Strategy:
    return Strategy(name=name, statement=f"Do {name}.", absent=(Optimisation.TENSOR_CORES,))


def record(name: str, speedup: float, *, session: str = "other", problem_digest: str = "p") -> StrategyRecord:
    return StrategyRecord(
        strategy=strategy(name),
        aligned=Alignment(statement=f"It does {name}.", by="test"),
        line=(),
        problem=problem_key(SESSION.facts),
        problem_digest=problem_digest,
        parent_digest="0",
        candidate_digest=f"{name}{speedup}",
        architecture="sm_90a",
        device="NVIDIA H200",
        bound=None,
        parent_in_force=(),
        seconds=1e-3,
        speedup=speedup,
        total_speedup=speedup,
        estimated=False,
        session=session,
        session_at="2026-01-01T00:00:00+00:00",
        revision="r1",
        recorded_at="2026-01-01T00:00:00+00:00",
    )


OFFERED = tuple(map(strategy, "abcd"))


@pytest.mark.parametrize(
    ("effects", "order"),
    [
        ((), "abcd"),
        ((("c", 2.0),), "cabd"),
        ((("a", 0.5),), "bcda"),
        ((("c", 1.2), ("d", 2.0)), "dcab"),
        ((("a", 0.5), ("b", 0.9)), "cdba"),
        ((("a", 0.5), ("d", 1.5)), "dbca"),
        # A gain that is less than a kernel differs from itself leaves the order.
        ((("d", 1.005),), "abcd"),
        # Of several records the mean counts.
        ((("d", 1.5), ("d", 0.66)), "abcd"),
        ((("x", 3.0),), "abcd"),
    ],
)
def test_what_won_comes_first_and_what_lost_last(effects, order):
    records = [record(name, speedup) for name, speedup in effects]
    found = ordered(OFFERED, records, SESSION, PARENT)
    assert "".join(choice.strategy.name for choice in found) == order


@pytest.mark.parametrize("condition", [Condition.SHORTCUT, Condition.SERIALISED_WGMMA])
def test_an_identity_of_the_graph_and_a_fault_in_machine_code_come_before_what_won(condition):
    offered = (*OFFERED[:2], replace(OFFERED[2], requires=(condition,)))
    for records, order in (
        ([record("b", 2.0)], "cba"),
        ([record("b", 2.0), record("c", 1.1)], "cba"),
        ([record("b", 2.0), record("c", 0.5)], "bac"),
    ):
        found = ordered(offered, records, SESSION, PARENT)
        assert "".join(choice.strategy.name for choice in found) == order
    assert chosen(offered, [record("a", 2.0)], SESSION, PARENT).because.startswith("c comes first:")


def test_a_ladder_keeps_its_order():
    ladder = tuple(replace(item, absent=()) for item in OFFERED)
    found = ordered(ladder, [record("d", 2.0)], SESSION, PARENT)
    assert [choice.strategy.name for choice in found] == list("abcd")
    assert chosen(ladder, [record("d", 2.0)], SESSION, PARENT).because == ""


def test_a_ladder_keeps_its_order_beside_strategies_with_conditions():
    a, b, c, d = OFFERED
    mixed = (a, replace(b, absent=()), replace(c, absent=()), d)
    found = ordered(mixed, [record("c", 3.0), record("d", 2.0)], SESSION, PARENT)
    assert [choice.strategy.name for choice in found] == list("dabc")


@pytest.mark.parametrize(
    ("effects", "name", "because"),
    [
        ((), "a", ""),
        ((("a", 2.0),), "a", ""),
        ((("b", 2.0),), "b", "b won on like problems: 2.00× (2.00 ms → 1.00 ms)"),
        ((("a", 0.5),), "b", "a comes last, because it lost on like problems: 0.50× (500 µs → 1.00 ms)"),
        (
            (("a", 0.5), ("b", 0.6), ("c", 0.7), ("d", 0.4)),
            "c",
            "a comes last, because it lost on like problems",
        ),
    ],
)
def test_the_choice_says_why_it_takes_the_place_of_the_first(effects, name, because):
    choice = chosen(OFFERED, [record(*effect) for effect in effects], SESSION, PARENT)
    assert choice.strategy.name == name
    assert choice.because.startswith(because)
    assert bool(choice.because) is bool(because)


def test_nothing_offered_is_no_choice():
    assert chosen((), [record("a", 2.0)], SESSION, PARENT) is None


def test_a_session_leaves_its_own_records_out_and_keeps_those_of_a_namesake():
    own = record("a", 2.0, session=SESSION.name, problem_digest=SESSION.problem.digest)
    namesake = record("b", 2.0, session=SESSION.name)
    earlier = replace(own, session_at="2025-01-01T00:00:00+00:00")
    other = record("c", 2.0)
    kept = earlier_records(SESSION, lambda facts, device: (own, namesake, earlier, other))
    assert kept == (namesake, earlier, other)
