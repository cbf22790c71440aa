"""An estimate lies in its interval and is positive."""

import math

import pytest

from cutegen_nb.core.estimate import Estimate


def estimate(low, seconds, high):
    return Estimate(target="NVIDIA H200", seconds=seconds, seconds_low=low, seconds_high=high, bound="DRAM")


def test_an_interval_may_be_a_point():
    assert estimate(1.0, 1.0, 1.0).seconds == 1.0


@pytest.mark.parametrize("bad", [(0.0, 1.0, 2.0), (1.1, 1.0, 2.0), (0.5, 1.0, 0.9), (0.5, math.nan, 2.0)])
def test_an_estimate_outside_its_interval_is_refused(bad):
    with pytest.raises(ValueError, match="must hold its estimate"):
        estimate(*bad)
