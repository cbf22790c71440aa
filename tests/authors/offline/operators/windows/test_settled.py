"""Windows that are the same at both sizes of a problem."""

from dataclasses import replace

import pytest

from cutegen_nb.authors.offline.graph.ir import Extent
from cutegen_nb.authors.offline.operators.operator import OperandTensor, OperatorCall
from cutegen_nb.authors.offline.operators.windows.attributes import Window, WindowAxis
from cutegen_nb.authors.offline.operators.windows.settled import settled
from cutegen_nb.core.errors import Declined

PLANES = (Extent(16, 16), Extent(32, 32))


def call(before, after):
    """Call of an adaptive mean of extents (full, scaled)."""
    inputs, outputs = ([Extent(*pair) for pair in pairs] for pairs in (before, after))
    windows = [
        Window(kind="avg", spatial=2, rank=2, adaptive=tuple(extent[size] for extent in after))
        for size in (0, 1)
    ]
    return OperatorCall(
        name="mean",
        operands=(OperandTensor(name="x", shape=(*PLANES, *inputs), dtype="float32"),),
        attributes=windows[0],
        scaled_attributes=windows[1],
        shape=(*PLANES, *outputs),
        dtype="float32",
    )


def test_a_part_of_the_extents_is_windows_side_by_side():
    window = settled(call([(64, 16), (60, 12)], [(32, 8), (15, 3)]))
    assert (window.adaptive, window.axes) == ((), (WindowAxis(), WindowAxis(2, 2), WindowAxis(4, 4)))


def test_a_number_stays_beside_a_part_of_the_extents():
    assert settled(call([(64, 16), (64, 16)], [(7, 7), (64, 16)])).adaptive == (7, "x.shape[-1]")
    assert settled(call([(64, 16), (64, 16)], [(32, 8), (7, 7)])).adaptive == ("x.shape[-2] // 2", 7)
    assert settled(call([(64, 16), (64, 16)], [(128, 32), (7, 7)])).adaptive == ("x.shape[-2] * 2", 7)


def test_other_sizes_and_other_windows_are_declined():
    with pytest.raises(Declined, match="size"):
        settled(call([(64, 16), (64, 16)], [(48, 13), (7, 7)]))
    fixed = call([(64, 16), (64, 16)], [(7, 7), (7, 7)])
    assert settled(fixed).adaptive == (7, 7)
    with pytest.raises(Declined, match="size"):
        settled(replace(fixed, scaled_attributes=Window(kind="avg", spatial=2, rank=1)))
