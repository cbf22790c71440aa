"""Intervals of estimates widen with the errors behind them."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.estimate.estimate import estimate
from cutegen_nb.analysis.estimate.interval import MOST_DEVIATION, interval, shares
from cutegen_nb.analysis.estimate.launch_terms import DRAM
from cutegen_nb.analysis.estimate.targets import find_target

H200, A100 = find_target("H200"), find_target("A100")


def test_an_uncertain_sample_widens_the_interval(call):
    widths = [
        found.seconds_high / found.seconds_low
        for error in (0.0, 0.1, 0.5, 100.0)
        for found in [estimate(call(error_fraction=error), H200)]
    ]
    assert widths == sorted(widths)
    assert widths[0] < 2
    low, high = interval(1.0, MOST_DEVIATION)
    assert widths[-1] == pytest.approx(high / low)


def test_the_weights_of_terms_add_up_to_one_and_the_largest_counts_most(call):
    found = shares(estimate(call(), H200).terms)
    assert sum(found.values()) == pytest.approx(1)
    assert max(found, key=found.get) == DRAM
    assert shares(()) == {}
