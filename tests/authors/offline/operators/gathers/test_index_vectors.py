"""Index vectors and the ways that make them."""

import numpy as np
import pytest

from cutegen_nb.authors.offline.operators.gathers.attributes import AxisMap
from cutegen_nb.authors.offline.operators.gathers.index_vectors import axis_maps, index_values
from cutegen_nb.core.graph import Ref

WAYS = {
    "every third": (np.arange(0, 8, 3), 8, AxisMap(0, "step", 3)),
    "reversed": (np.arange(7, -1, -1), 8, AxisMap(0, "reverse")),
    "each twice": (np.arange(16) // 2, 8, AxisMap(0, "repeat", 2)),
    "rolled": ((np.arange(8) + 3) % 8, 8, AxisMap(0, "roll", 3)),
    "padded circularly": (np.arange(-2, 11) % 8, 8, AxisMap(0, "roll", -2, 5)),
    "padded circularly behind": (np.arange(11) % 8, 8, AxisMap(0, "roll", 0, 3)),
    "clamped": (np.clip(np.arange(-2, 11), 0, 7), 8, AxisMap(0, "clamp", 2, 5)),
    "mirrored": (7 - np.abs(7 - np.abs(np.arange(-2, 11))), 8, AxisMap(0, "mirror", 2, 5)),
}


@pytest.mark.parametrize("name", WAYS)
def test_a_way_is_recognised(name):
    values, extent, expected = WAYS[name]
    assert expected in axis_maps(values, extent, 0)


def test_a_roll_is_recognised_from_either_end():
    found = axis_maps((np.arange(8) + 3) % 8, 8, 1)
    assert {AxisMap(1, "roll", 3), AxisMap(1, "roll", -5)} <= set(found)


@pytest.mark.parametrize("values", [[0, 2, 1, 3], [0, 1, 2], [0, 1, 2, 3]])
def test_an_unknown_order_and_a_range_have_no_way(values):
    assert axis_maps(np.array(values), 4, 0) == ()


@pytest.mark.slow
def test_values_are_computed_from_numbers_alone(traced):
    graph = traced("functional.pad(x, (2, 1), mode='reflect')", "torch.randn(4, 16)").full.graph
    index = next(node for node in graph.nodes if "index" in node.op).args[1][1]
    assert index_values(graph, index).tolist() == [2, 1, *range(16), 14]
    assert index_values(graph, Ref("x")) is None
