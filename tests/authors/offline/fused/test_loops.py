"""Axes become as few loops as the tensors allow."""

from cutegen_nb.authors.offline.fused.loops import loop_nest
from cutegen_nb.authors.offline.fused.plan import plan
from cutegen_nb.authors.offline.graph.reading import read


def nest_of(traced, value, *inputs, merge=True):
    (kernel,) = plan(read(traced(value, *inputs))).kernels
    return loop_nest(kernel, merge=merge), kernel


def extents(loops):
    return [loop.extent.full for loop in loops]


def test_a_dense_tensor_is_one_loop(traced):
    nest, _ = nest_of(traced, "torch.relu(x)", "torch.rand(64, 32, 16)")
    assert (extents(nest.rows), nest.cols) == ([64 * 32 * 16], ())
    alone, _ = nest_of(traced, "torch.relu(x)", "torch.rand(64, 32, 16)", merge=False)
    assert extents(alone.rows) == [64, 32, 16]


def test_a_broadcast_operand_keeps_its_loop_apart(traced):
    nest, _ = nest_of(traced, "x + y", "torch.rand(64, 32, 16)", "torch.rand(16)")
    assert extents(nest.rows) == [64 * 32, 16]


def test_a_reduction_has_rows_and_columns_and_a_full_one_a_single_row(traced):
    nest, kernel = nest_of(traced, "x.sum((1, 2))", "torch.rand(64, 32, 16)")
    assert (extents(nest.rows), extents(nest.cols)) == ([64], [512])
    assert nest.fastest(kernel.loads[0]) is nest.cols[0]
    whole, _ = nest_of(traced, "x.sum()", "torch.rand(64, 32)")
    assert (extents(whole.rows), extents(whole.cols)) == ([1], [2048])
