"""The terms of a launch, and how they overlap."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.estimate.estimate import estimate
from cutegen_nb.analysis.estimate.launch_terms import DRAM, L1, LATENCY, LAUNCH, TENSOR
from cutegen_nb.analysis.estimate.targets import find_target
from cutegen_nb.core.estimate import FullSizeSample

H200, A100 = find_target("H200"), find_target("A100")
GIB = 1 << 30


@pytest.mark.parametrize(
    ("changed", "bound"),
    [
        ({"counters": {"instructions": {"fp32": 1 << 31}}}, "fp32 pipe"),
        ({"counters": {"flops": {"tensor.f16": 1 << 50}}}, TENSOR),
        ({"counters": {"smem_wavefronts": 1 << 33}}, L1),
        ({"longest_warp_instructions": 1 << 22}, LATENCY),
        ({}, DRAM),
    ],
)
def test_the_work_that_grew_bounds_the_estimate(call, changed, bound):
    found = estimate(call(**changed), H200)
    assert found.bound == bound
    assert (found.seconds > 2 * estimate(call(), H200).seconds) is (bound != DRAM)


def test_launches_add_up_and_each_costs_its_start(launch):
    one = estimate(FullSizeSample(launches=(launch(),)), H200)
    two = estimate(FullSizeSample(launches=(launch(), launch())), H200)
    start = next(term.seconds for term in one.terms if term.name == LAUNCH)
    assert two.seconds == pytest.approx(2 * one.seconds, rel=0.01)
    assert next(term.seconds for term in two.terms if term.name == LAUNCH) == pytest.approx(2 * start)
    assert start == pytest.approx(3e-6)


def test_loads_that_wait_for_a_busy_dram_wait_longer(call):
    """Where the chain takes as long as the transfers, both together take more than either."""
    found = estimate(call(load_rounds=5 * GIB // 512), H200)
    seconds = {term.name: term.seconds for term in found.terms}
    assert seconds[LATENCY] == pytest.approx(seconds[DRAM], rel=0.3)
    assert found.seconds > 1.25 * max(seconds.values())
