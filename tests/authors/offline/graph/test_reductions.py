"""Reductions of ATen become sums, extrema and places."""

import pytest

from cutegen_nb.authors.offline.graph.reading import read


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        ("x.sum(1)", ["sum"]),
        ("x.mean(1)", ["sum"]),
        ("x.amax(1)", ["max"]),
        ("x.argmin(1)", ["argmin"]),
        ("x.var(1)", ["sum", "sum"]),
        ("torch.max(x, 1)", ["max", "argmax"]),
        ("(x > 0).any(1)", ["any"]),
    ],
)
def test_each_is_made_of_plain_reductions_over_its_dimensions(traced, value, kinds):
    program = read(traced(value, "torch.rand(64, 32)"))
    found = [op for op in program.ops.values() if op.reduction]
    assert sorted(op.reduction for op in found) == sorted(kinds)
    assert {op.dims for op in found} == {(1,)}


def test_the_divisor_of_a_mean_is_a_count_that_follows_the_size(traced):
    program = read(traced("x.mean((0, 2))", "torch.rand(64, 32, 16)"))
    counts = [
        operand.extent.full
        for op in program.ops.values()
        for operand in op.args
        if hasattr(operand, "extent")
    ]
    assert counts == [64 * 16]
