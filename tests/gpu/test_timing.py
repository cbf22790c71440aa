"""The arithmetic of timing: ratios, their interval, the roof. Measuring itself needs a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_nb.gpu import timing


def _blocks(median, noise, seed, count=8, size=10):
    generator = np.random.default_rng(seed)
    return (median * (1 + noise * generator.standard_normal((count, size)))).tolist()


def test_the_interval_holds_the_true_ratio():
    middle, low, high = timing.ratio_interval(_blocks(3.0, 0.02, 1), _blocks(2.0, 0.02, 2))
    assert low <= 1.5 <= high
    assert low <= middle <= high


def test_a_kernel_against_itself_is_neither_faster_nor_slower():
    for seed in range(20):
        _, low, high = timing.ratio_interval(_blocks(1.0, 0.03, seed), _blocks(1.0, 0.03, 100 + seed))
        assert low <= 1.02
        assert high >= 0.98


def test_drift_common_to_both_cancels():
    drift = np.linspace(1.0, 2.0, 80).reshape(8, 10)
    middle, low, high = timing.ratio_interval((3 * drift).tolist(), (2 * drift).tolist())
    assert (middle, low, high) == pytest.approx((1.5, 1.5, 1.5))


def test_a_time_that_memory_does_not_allow_is_shown_with_its_arithmetic():
    finding = timing.above_roof(0.5, 4_000_000_000, 4e12, 60 << 20)
    assert finding is not None
    assert "0.5 ms" in finding.message
    assert "1 ms" in finding.message


def test_a_possible_time_is_no_finding():
    assert timing.above_roof(1.02, 4_000_000_000, 4e12, 60 << 20) is None
    assert timing.above_roof(0.9, 4_000_000_000, 4e12, 60 << 20) is None


def test_a_problem_that_fits_the_cache_has_no_roof():
    assert timing.above_roof(0.001, 10_000_000, 4e12, 60 << 20) is None
