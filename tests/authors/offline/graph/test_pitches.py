"""Slices and the parts of a concatenation lie in larger tensors, and no copy is made of them."""

from cutegen_nb.authors.offline.fused.loops import loop_nest
from cutegen_nb.authors.offline.fused.plan import plan
from cutegen_nb.authors.offline.graph.reading import read

X = "torch.rand(64, 32, 16)"


def planned(traced, value, *inputs):
    return plan(read(traced(value, *inputs)))


def loops(planned_kernels):
    (kernel,) = planned_kernels.kernels
    nest = loop_nest(kernel, pitches=planned_kernels.pitches)
    return [loop.extent.full for loop in nest.rows]


def test_halves_of_the_last_dimension_are_read_and_joined_by_one_kernel(traced):
    found = planned(traced, "torch.cat([x[..., 8:], -x[..., :8]], -1)", X)
    assert [sorted(pitch.breaks) for pitch in found.pitches.values()] == [[2]] * 4
    # The halves' rows do not follow on one another in memory.
    assert loops(found) == [64 * 32, 8]


def test_a_loop_runs_over_the_dimensions_behind_a_gap(traced):
    assert loops(planned(traced, "x[:, 8:24] * 2", X)) == [64, 16 * 16]
    # Rows of the first dimension are dense.
    assert loops(planned(traced, "x[8:24] * 2", X)) == [16 * 32 * 16]


def test_elements_with_a_step_are_apart_on_both_sides(traced):
    assert loops(planned(traced, "x[:, ::2] * 2", X)) == [64, 16, 16]


def test_a_slice_whose_rows_are_reduced_is_made_dense(traced):
    assert not planned(traced, "x[..., 4:8].sum(-1)", X).pitches
