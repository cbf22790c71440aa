"""Tensors that are filled slice by slice, as circular padding is."""

import pytest

from cutegen_nb.authors.offline.operators.gathers.attributes import AxisMap
from cutegen_nb.authors.offline.operators.gathers.filled import filled_from
from cutegen_nb.core.graph import Ref

ROWS = "torch.randn(4, 6, 10)"


def filled(traced, value, *inputs):
    graph = traced(value, *inputs).full.graph
    found = [filled_from(graph, node) for node in graph.nodes if "slice_scatter" in node.op]
    return [item for item in found if item is not None]


@pytest.mark.slow
def test_circular_padding_is_a_roll_of_a_longer_axis(traced):
    ((source, ways),) = filled(traced, "functional.pad(x, (2, 3), mode='circular')", ROWS)
    assert source == Ref("x")
    assert [axis[0] for axis in ways] == [AxisMap(0), AxisMap(1), AxisMap(2, "roll", -2, 5)]


@pytest.mark.slow
def test_each_padded_dimension_has_its_way(traced):
    ((_, ways),) = filled(traced, "functional.pad(x[None], (0, 1, 2, 0), mode='circular')", ROWS)
    assert [axis[0].grown for axis in ways] == [0, 0, 2, 1]


@pytest.mark.slow
def test_padding_of_padding_is_two_gathers(traced):
    value = "functional.pad(functional.pad(x, (1, 1), mode='circular'), (2, 0), mode='circular')"
    first, second = filled(traced, value, ROWS)
    assert first[0] == Ref("x")
    assert second[0].name.startswith("slice_scatter")


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [
        "x.slice_scatter(y, 1, 0, 6)",  # over elements of another tensor
        "torch.empty(4, 8, 10).slice_scatter(x, 1, 0, 6)",  # in part only
        "torch.empty(4, 6, 20).slice_scatter(x, 2, 0, 20, 2)",  # every second element
        "torch.empty(4, 12, 10).slice_scatter(x, 1, 0, 6).slice_scatter(y, 1, 6, 12)",  # from two tensors
    ],
)
def test_other_fillings_are_no_gathers(traced, value):
    assert filled(traced, value, ROWS, ROWS) == []
