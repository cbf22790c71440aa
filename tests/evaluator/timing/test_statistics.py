"""Ratios of given latencies: the interval holds the true ratio, and few blocks make it wide."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cutegen_nb.evaluator.timing import statistics
from cutegen_nb.evaluator.timing.statistics import AGAIN, CANDIDATE

# Milliseconds in blocks of five turns; the clocks of the third block are slower, for both alike.
CANDIDATE_MS = [
    [0.0621, 0.0623, 0.0622, 0.0621, 0.0624],
    [0.0622, 0.0622, 0.0621, 0.0623, 0.0622],
    [0.0630, 0.0631, 0.0629, 0.0632, 0.0630],
    [0.0622, 0.0621, 0.0623, 0.0622, 0.0621],
]
EAGER_MS = [
    [0.0932, 0.0934, 0.0933, 0.0931, 0.0936],
    [0.0933, 0.0933, 0.0932, 0.0934, 0.0933],
    [0.0945, 0.0946, 0.0944, 0.0948, 0.0945],
    [0.0933, 0.0932, 0.0934, 0.0933, 0.0931],
]


def test_the_ratio_of_latencies_is_the_median_of_pairs_with_its_interval():
    middle, low, high = statistics.ratio_interval(EAGER_MS, CANDIDATE_MS)
    pairs = np.asarray(EAGER_MS) / np.asarray(CANDIDATE_MS)
    assert middle == pytest.approx(float(np.median(pairs)))
    assert middle == pytest.approx(1.5, abs=2e-3)
    assert 1.497 < low <= middle <= high < 1.503
    assert statistics.ratio_interval(EAGER_MS, CANDIDATE_MS) == (middle, low, high)  # the same again


def test_the_interval_of_the_inverse_ratio_is_the_inverse():
    middle, low, high = statistics.ratio_interval(EAGER_MS, CANDIDATE_MS)
    inverse, inverse_low, inverse_high = statistics.ratio_interval(CANDIDATE_MS, EAGER_MS)
    assert (1 / inverse, 1 / inverse_high, 1 / inverse_low) == pytest.approx((middle, low, high), rel=1e-4)


def test_one_block_says_nothing_of_others():
    assert statistics.ratio_interval([[2.0, 2.0]], [[1.0, 1.0]]) == (2.0, 0.0, math.inf)
    assert not statistics.settled({CANDIDATE: [[1.0]], "eager": [[2.0]]})


def test_a_clock_that_showed_nothing_gives_no_interval():
    assert statistics.ratio_interval([[0.0], [0.0]], [[1.0], [1.0]]) == (0.0, 0.0, math.inf)


@pytest.mark.parametrize("count", [5, 10, 20])
def test_nineteen_of_twenty_intervals_hold_the_true_ratio(count):
    held = 0
    generator = np.random.default_rng(count)
    for _ in range(300):
        # Blocks differ among each other more than samples within a block.
        drift = 1 + 0.02 * generator.standard_normal((count, 1))
        noise = 1 + 0.005 * generator.standard_normal((count, 5))
        _, low, high = statistics.ratio_interval(
            (1.25 * drift * noise).tolist(), np.ones((count, 5)).tolist(), 200
        )
        held += low <= 1.25 <= high
    assert 0.90 <= held / 300 <= 0.99


def test_noise_is_the_spread_of_a_baseline_against_itself():
    samples = {CANDIDATE: CANDIDATE_MS, "eager": EAGER_MS, AGAIN: EAGER_MS[1:] + EAGER_MS[:1]}
    noise = statistics.noise_fraction(samples)
    assert 0 < noise < 0.03
    assert statistics.resolution_fraction(samples) == pytest.approx(2 * 0.0001 / 0.0622, rel=0.01)
