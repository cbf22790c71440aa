"""Operators of sliding windows in a graph, with their numbers."""

import pytest

from cutegen_nb.authors.offline.operators.windows.matches import windows_in

IMAGE = "torch.rand(2, 4, 17, 19)"


@pytest.mark.parametrize(
    ("value", "kind", "axis"),
    [
        ("functional.max_pool2d(x, 3, 2, 1, 2)", "max", (3, 2, 1, 2)),
        ("functional.avg_pool2d(x, 2)", "avg", (2, 2, 0, 1)),
    ],
)
def test_a_pooling_is_read_with_its_numbers(traced, value, kind, axis):
    (match,) = windows_in(traced(value, IMAGE).full.graph)
    window = match.attributes
    assert (window.kind, window.spatial) == (kind, 2)
    assert window.axes[2].text == str(axis)


def test_a_convolution_of_single_channels_is_taken_and_one_over_channels_is_not(traced):
    single = traced("functional.conv2d(x, y, groups=4)", IMAGE, "torch.rand(4, 1, 3, 3)").full.graph
    assert windows_in(single)[0].attributes.kind == "conv"
    dense = traced("functional.conv2d(x, y)", IMAGE, "torch.rand(8, 4, 3, 3)").full.graph
    assert windows_in(dense) == ()


def test_a_pooling_whose_indices_are_used_is_left_alone(traced):
    value = "functional.max_pool2d(x, 3, return_indices=True)[1]"
    assert windows_in(traced(value, IMAGE).full.graph) == ()
