"""Strategies of windows are offered where a march over slices fits."""

from cutegen_nb.authors.offline.operators.windows.strategies import MARCH
from cutegen_nb.authors.offline.operators.writer import OperatorsWriter

VOLUME = "torch.rand(2, 8, 32, 64, 64)"


def menu(traced, value):
    return [one.name for one in OperatorsWriter().menu(traced(value, VOLUME))]


def test_overlapping_windows_are_marched_over_and_adaptive_ones_are_not(traced):
    assert MARCH in menu(traced, "functional.max_pool3d(x, 3, 1, 1)")
    assert MARCH not in menu(traced, "functional.adaptive_avg_pool3d(x, 1)")
