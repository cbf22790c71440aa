"""Attributes of a sliding window."""

import pytest

from cutegen_nb.authors.offline.operators.windows.attributes import Window, WindowAxis


def test_the_span_of_a_dilated_window_counts_the_gaps():
    assert WindowAxis(window=3, dilation=2).span == 5
    assert WindowAxis().span == 1
    assert WindowAxis(window=3, stride=2, padding=1).text == "(3, 2, 1, 1)"


def test_the_taps_are_those_of_all_axes():
    axes = (WindowAxis(), WindowAxis(window=3), WindowAxis(window=5))
    assert Window(kind="max", spatial=2, axes=axes).taps == 15


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ({}, False),
        ({"ceil": True}, True),
        ({"include_pad": False}, True),
        ({"include_pad": False, "divisor": 4}, False),
        ({"ceil": True, "adaptive": (2, 2)}, False),
    ],
)
def test_the_divisor_of_a_mean_differs_at_the_rim_only_where_padding_is_not_counted(more, counts):
    axes = (WindowAxis(), WindowAxis(window=3, padding=1), WindowAxis(window=3, padding=1))
    assert Window(kind="avg", spatial=2, axes=axes, **more).counts_rim is counts
    assert not Window(kind="max", spatial=2, axes=axes, **more).counts_rim
