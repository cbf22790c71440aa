"""A latency is finite and not negative."""

import math

import pytest

from cutegen_nb.core.timing import BaselineTiming, Timing


def timing(median, *samples, rival=None):
    return Timing(median_ms=median, samples_ms=samples, baselines=(), bandwidth_bytes_per_s=1e12, rival=rival)


def test_a_coarse_clock_may_show_nothing():
    assert timing(0.0, 0.0, 0.1).median_ms == 0.0


@pytest.mark.parametrize(
    ("median", "samples", "name"),
    [(-1.0, (), "median_ms"), (math.nan, (), "median_ms"), (1.0, (1.0, math.inf), "samples_ms")],
)
def test_what_no_clock_gives_is_refused_by_name(median, samples, name):
    with pytest.raises(ValueError, match=f"{name} is"):
        timing(median, *samples)


@pytest.mark.parametrize(
    ("ratio", "low", "high", "no_faster"),
    [
        (0.9, 0.89, 0.91, True),
        (1.0, 0.9, 1.2, True),
        (1.002, 0.998, 1.006, True),  # no comparison would call that faster
        (1.008, 1.002, 1.014, False),
        (1.1, 1.09, 1.11, False),
    ],
)
def test_a_candidate_that_gains_less_than_counts_is_no_faster(ratio, low, high, no_faster):
    rival = BaselineTiming(name="rival", median_ms=1.0, speedup=ratio, speedup_low=low, speedup_high=high)
    assert timing(1.0, 1.0, rival=rival).no_faster is no_faster


def test_without_a_rival_nothing_is_known_of_a_gain():
    assert not timing(1.0, 1.0).no_faster
