"""Statements of forward: shapes, views and allocations that follow the inputs at run time."""

import pytest

from cutegen_nb.authors.offline.fused.host import Sizes, allocation, extent_names, size_line, written_for
from cutegen_nb.authors.offline.graph.ir import Extent
from cutegen_nb.authors.offline.graph.reading import read
from cutegen_nb.core.errors import Declined


def test_extents_are_read_from_the_inputs_where_they_are_used(traced):
    program = read(traced("x + y", "torch.rand(64, 32)", "torch.rand(32)"))
    assert extent_names(program, "x") == ["x0", "x1"]
    assert size_line(program, "x", ["launch(x1)"]) == ["_, x1 = x.shape"]
    assert size_line(program, "y", ["launch(x1)"]) == []
    assert size_line(program, "y", ["launch(y0)"]) == ["y0, = y.shape"]


def test_an_output_like_an_input_is_allocated_like_it(traced):
    sizes = Sizes(read(traced("torch.relu(x)", "torch.rand(64, 32)")))
    assert allocation("out", ["x0", "x1"], "float32", sizes) == "out = torch.empty_like(x)"
    assert "dtype=torch.float16, device=x.device" in allocation("out", ["x0", "x1"], "float16", sizes)
    assert (
        allocation("out", ["x0"], "float32", sizes)
        == "out = torch.empty((x0,), dtype=torch.float32, device=x.device)"
    )


def test_the_file_says_for_which_shapes_it_was_written():
    assert written_for([("x", [Extent(64, 8), Extent(32, 4)]), ("y", [])]) == "x (64, 32), y ()"


@pytest.mark.parametrize(
    ("extent", "text"),
    [
        (Extent(66, 18), "x0 + 2"),
        (Extent(31, 7), "x1 - 1"),
        (Extent(129, 33), "2 * x0 + 1"),
        (Extent(8, 2), "x0 // 8"),
        (Extent(9, 9), "9"),
    ],
)
def test_a_number_follows_an_extent_where_it_is_one_of_a_convolution_s(traced, monkeypatch, extent, text):
    program = read(traced("x + y", "torch.rand(64, 32)", "torch.rand(32)"))
    shapes = {"x": (Extent(64, 16), Extent(32, 8)), "y": (Extent(32, 8),)}
    monkeypatch.setattr(type(program), "shape", lambda _, name: shapes[name])
    assert Sizes(program).number(extent) == text


def test_a_number_that_follows_none_is_declined(traced):
    sizes = Sizes(read(traced("x + y", "torch.rand(64, 32)", "torch.rand(32)")))
    with pytest.raises(Declined, match="cannot compute the size 817"):
        sizes.number(Extent(817, 3))
