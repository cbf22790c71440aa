"""Statements of forward: shapes, views and allocations that follow the inputs at run time."""

from cutegen_nb.authors.offline.fused.host import Sizes, allocation, extent_names, size_line, written_for
from cutegen_nb.authors.offline.graph.ir import Extent
from cutegen_nb.authors.offline.graph.reading import read


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
