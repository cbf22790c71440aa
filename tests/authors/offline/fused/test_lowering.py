"""Views give axes to dimensions."""

import pytest

from cutegen_nb.authors.offline.fused.lowering import Axis, SplitNeededError, regroup
from cutegen_nb.authors.offline.graph.ir import Extent


def test_a_view_gives_axes_to_dimensions_and_asks_for_a_split_inside_one():
    batch, channels, width = (Axis(Extent(n, n)) for n in (4, 6, 5))
    assert regroup((batch, channels, width), (Extent(24, 24), Extent(5, 5))) == ((batch, channels), (width,))
    with pytest.raises(SplitNeededError) as split:
        regroup((batch, channels, width), (Extent(8, 8), Extent(3, 3), Extent(5, 5)))
    assert split.value.axis is channels
    assert split.value.inner == Extent(3, 3)
    with pytest.raises(ValueError):
        regroup((channels, width), (Extent(10, 10), Extent(3, 3)))
