"""Claims are scored by the way and the size of a change; what was not measured is said to be so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutegen_nb.analysis.history.claim_score import LATENCY, SPEEDUP, Basis, Outcome, score
from cutegen_nb.core.estimate import FullSizeSample, LaunchSample
from cutegen_nb.core.profile import ProfileSource
from cutegen_nb.core.round import PredictedChange
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.strategy import Direction
from cutegen_nb.core.timing import Timing
from cutegen_nb.testing import examples

SECTORS = "gmem_load_sectors"
DOWN, UP = Direction.DOWN, Direction.UP


def claim(counter=SECTORS, direction=DOWN, size=None):
    return PredictedChange(counter=counter, direction=direction, change_fraction=size)


def sampled(ran, full):
    """An evaluation that counted `ran` sectors at the reduced size, and `full` at the full one."""
    evaluation = examples.passed(ran)
    launch = LaunchSample(profile=examples.passed(full).profile.launches[0], ctas=1)
    return replace(evaluation, full_size=FullSizeSample(launches=(launch,)))


def timed(median_ms):
    timing = Timing(median_ms=median_ms, samples_ms=(), baselines=(), bandwidth_bytes_per_s=1e12)
    return replace(examples.passed(10), timing=timing)


def compared(relation, speedup=None, estimated_s=None):
    return Comparison(relation=relation, reason=".", speedup=speedup, estimated_s=estimated_s)


@pytest.mark.parametrize(
    ("before", "after", "claimed", "outcome"),
    [
        (1000, 500, claim(), Outcome.HELD),
        (1000, 500, claim(direction=UP), Outcome.DID_NOT_HOLD),
        (1000, 2000, claim(direction=UP), Outcome.HELD),
        (1000, 1000, claim(), Outcome.DID_NOT_HOLD),
        (1000, 996, claim(), Outcome.DID_NOT_HOLD),
        (0, 10, claim(direction=UP), Outcome.HELD),
        (1000, 500, claim(direction=None), Outcome.NO_DIRECTION),
        # The size holds within a factor of two, or within 5 points.
        (1000, 500, claim(size=0.5), Outcome.HELD),
        (1000, 750, claim(size=0.5), Outcome.HELD),
        (1000, 760, claim(size=0.5), Outcome.SIZE_OFF),
        (1000, 500, claim(size=0.2), Outcome.SIZE_OFF),
        (1000, 940, claim(size=0.02), Outcome.HELD),
        (1000, 920, claim(size=0.02), Outcome.SIZE_OFF),
        (0, 10, claim(direction=UP, size=0.5), Outcome.HELD),
        (1000, 1500, claim(size=0.5), Outcome.DID_NOT_HOLD),
        # A prediction of no change.
        (1000, 1020, claim(direction=None, size=0.0), Outcome.HELD),
        (1000, 1021, claim(direction=None, size=0.0), Outcome.DID_NOT_HOLD),
    ],
)
def test_a_claim_about_a_counter_is_scored_by_direction_and_size(before, after, claimed, outcome):
    found = score(claimed, examples.passed(before), examples.passed(after))
    assert found.outcome is outcome
    assert outcome.value in found.text


@pytest.mark.parametrize("counter", [LATENCY, SPEEDUP, "no_such_counter", "flops", "gmem_accesses"])
def test_what_was_not_measured_is_said_to_be_so(counter):
    for before, after in (
        (examples.passed(10), examples.passed(5)),
        (None, examples.passed(5)),
        (examples.passed(5), None),
    ):
        found = score(claim(counter), before, after)
        assert (found.outcome, found.measured) == (Outcome.NOT_MEASURED, None)
        assert found.text.endswith(": not measured")
    assert score(claim(), None, examples.passed(5)).text == "`gmem_load_sectors` down: not measured"


def test_counts_are_of_the_full_size_where_both_were_sampled_and_the_text_says_which():
    both = score(claim(), sampled(10, 4000), sampled(20, 1000))
    assert both.text == "`gmem_load_sectors` down: 4,000 → 1,000 (−75.0 %) at full size, held"
    one = score(claim(), examples.passed(10), sampled(20, 1000))
    assert one.text == "`gmem_load_sectors` down: 10 → 20 (+100.0 %) at the size that ran, did not hold"


def test_counts_of_the_simulator_and_of_a_gpu_are_not_compared():
    simulated = examples.passed(10)
    gpu = replace(simulated, profile=replace(simulated.profile, source=ProfileSource.NSIGHT))
    assert score(claim(), simulated, gpu).outcome is Outcome.NOT_MEASURED
    assert score(claim(), gpu, gpu).measured.basis is Basis.FULL


def test_a_size_that_is_off_is_told_beside_the_measured_one():
    found = score(claim(direction=UP, size=0.4), examples.passed(600), examples.passed(3100))
    assert found.text == (
        "`gmem_load_sectors` up by 40 %: 600 → 3,100 at the size that ran, direction right, size off "
        "(predicted +40 %, measured +416.7 %)"
    )


@pytest.mark.parametrize(
    ("claimed", "relation", "outcome"),
    [
        (claim(LATENCY), Relation.FASTER, Outcome.HELD),
        (claim(LATENCY), Relation.SLOWER, Outcome.DID_NOT_HOLD),
        (claim(LATENCY), Relation.CANNOT_TELL, Outcome.CANNOT_TELL),
        (claim(LATENCY, UP), Relation.SLOWER, Outcome.HELD),
        (claim(SPEEDUP, UP), Relation.FASTER, Outcome.HELD),
        (claim(SPEEDUP, UP), Relation.SLOWER, Outcome.DID_NOT_HOLD),
        (claim(SPEEDUP, UP, 3.0), Relation.FASTER, Outcome.SIZE_OFF),
        (claim(SPEEDUP, None, 0.0), Relation.CANNOT_TELL, Outcome.HELD),
    ],
)
def test_two_times_are_told_apart_by_their_comparison_and_not_by_two_medians(claimed, relation, outcome):
    found = score(claimed, timed(4.11), timed(4.06), compared(relation, speedup=1.012))
    assert found.outcome is outcome
    assert found.measured.basis is Basis.FULL


def test_without_a_gpu_times_are_estimates_and_say_so():
    made = compared(Relation.ESTIMATED_FASTER, speedup=2.0, estimated_s=1e-3)
    found = score(claim(LATENCY), examples.passed(10), examples.passed(5), made)
    assert found.text == "`latency_ms` down: 2.00 ms → 1.00 ms (−50.0 %), estimated at full size, held"
    slower = compared(Relation.ESTIMATED_SLOWER, speedup=0.5, estimated_s=2e-3)
    assert score(claim(LATENCY), examples.passed(10), examples.passed(5), slower).outcome is (
        Outcome.DID_NOT_HOLD
    )
    sure = compared(Relation.ESTIMATED_FASTER, speedup=2.0, estimated_s=1e-3)
    off = score(claim(SPEEDUP, UP, 9.0), examples.passed(10), examples.passed(5), sure)
    assert off.text.endswith("direction right, size off (predicted 10×, estimated 2.00×)")


def test_a_time_needs_a_comparison_of_the_two():
    assert score(claim(LATENCY), timed(2.0), timed(1.0)).outcome is Outcome.NOT_MEASURED
    counted = compared(Relation.LESS_WORK)
    assert score(claim(LATENCY), examples.passed(2), examples.passed(1), counted).outcome is (
        Outcome.NOT_MEASURED
    )


@given(before=st.integers(0, 10**9), after=st.integers(0, 10**9))
def test_no_counter_holds_both_ways(before, after):
    ways = [
        score(claim(direction=way), examples.passed(before), examples.passed(after)).outcome
        for way in Direction
    ]
    assert ways.count(Outcome.HELD) <= 1
