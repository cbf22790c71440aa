"""A latency is finite and not negative."""

import math

import pytest

from cutegen_nb.core.timing import Timing


def timing(median, *samples):
    return Timing(median_ms=median, samples_ms=samples, baselines=(), bandwidth_bytes_per_s=1e12)


def test_a_coarse_clock_may_show_nothing():
    assert timing(0.0, 0.0, 0.1).median_ms == 0.0


@pytest.mark.parametrize(
    ("median", "samples", "name"),
    [(-1.0, (), "median_ms"), (math.nan, (), "median_ms"), (1.0, (1.0, math.inf), "samples_ms")],
)
def test_what_no_clock_gives_is_refused_by_name(median, samples, name):
    with pytest.raises(ValueError, match=f"{name} is"):
        timing(median, *samples)
