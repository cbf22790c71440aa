"""Time that a strategy could save by an estimate's terms, and the order that follows."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.strategy.sensitivity import is_hopeful, lowered_terms, order, saved_seconds
from cutegen_nb.core.estimate import Estimate, Term
from cutegen_nb.core.strategy import Bound, Direction, ExpectedEffect, Strategy

TERMS = (
    Term(name="DRAM", seconds=10e-3),
    Term(name="L1 and shared memory", seconds=6e-3),
    Term(name="fp32 pipe", seconds=4e-3),
    Term(name="instruction issue", seconds=0.5e-3),
    Term(name="latency of loads", seconds=2e-3),
    Term(name="launch", seconds=3e-6),
)
ESTIMATE = Estimate(
    target="NVIDIA H200", seconds=10.5e-3, seconds_low=9e-3, seconds_high=12e-3, bound="DRAM", terms=TERMS
)


def lowering(*counters: str, bounds: tuple[Bound, ...] = (), direction: Direction = Direction.DOWN):
    effects = tuple(ExpectedEffect(counter=counter, direction=direction) for counter in counters)
    return Strategy(name="s", statement="", effects=effects, bounds=bounds)


@pytest.mark.parametrize(
    ("strategy", "names", "saved"),
    [
        (lowering("gmem_load_sectors"), ["DRAM", "L1 and shared memory"], 6e-3),
        (lowering("smem_wavefronts"), ["L1 and shared memory"], 0.0),
        (lowering("warp_instructions"), ["fp32 pipe", "instruction issue"], 0.0),
        (lowering("latency_ms"), ["latency of loads", "launch"], 0.0),
        (lowering("latency_ms", bounds=(Bound.COMPUTE,)), ["fp32 pipe", "instruction issue"], 0.0),
        (lowering("latency_ms", bounds=(Bound.MEMORY,)), ["latency of loads", "launch"], 0.0),
        (lowering(bounds=(Bound.MEMORY,)), ["DRAM"], 4e-3),
        (lowering("gmem_load_sectors", direction=Direction.UP, bounds=(Bound.MEMORY,)), ["DRAM"], 4e-3),
        (lowering("no_such_counter"), [], 0.0),
    ],
)
def test_terms_follow_from_effects_and_only_the_largest_other_term_is_left(strategy, names, saved):
    assert [term.name for term in lowered_terms(strategy, ESTIMATE)] == names
    assert saved_seconds(strategy, ESTIMATE) == pytest.approx(saved)


def test_a_strategy_against_a_small_term_is_not_hopeful_and_one_against_none_is_kept():
    assert is_hopeful(lowering("gmem_load_sectors"), ESTIMATE)
    assert not is_hopeful(lowering("branches"), ESTIMATE)
    assert is_hopeful(lowering("no_such_counter"), ESTIMATE)


def test_the_strategy_that_saves_most_comes_first_and_then_the_one_with_most_to_lower():
    some = [lowering("branches"), lowering("smem_wavefronts"), lowering("gmem_sectors")]
    ordered = sorted(some, key=lambda one: order(one, ESTIMATE))
    assert [one.effects[0].counter for one in ordered] == ["gmem_sectors", "smem_wavefronts", "branches"]
