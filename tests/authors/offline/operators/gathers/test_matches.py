"""Gathers found in a traced graph, and gathers of gathers."""

import pytest

from cutegen_nb.authors.offline.operators.gathers.matches import gathers_in

FLOATS, ROWS = "torch.randn(20, 50)", "torch.randint(0, 20, (30,))"
COLUMNS = "torch.randint(0, 50, (40,))"


def matches(traced, value, *inputs):
    return gathers_in(traced(value, *inputs).full.graph)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "count"),
    [
        ("functional.pad(x, (1, 2)).flip(0)", 1),  # different dimensions
        ("functional.pad(x, (1, 2)).flip(1)", 2),  # the same dimension
        ("functional.pad(functional.pad(x, (1, 0)), (0, 0, 1, 0), value=1.0)", 2),  # two values outside
        ("x.flip(0).flip(1) + x.flip(0)", 2),  # the first is used twice
    ],
)
def test_two_gathers_are_joined_where_both_ways_are_kept(traced, value, count):
    assert len(matches(traced, value, FLOATS)) == count


@pytest.mark.slow
def test_index_tensors_of_both_are_operands_in_order(traced):
    (found,) = matches(traced, "x[y][:, z]", FLOATS, ROWS, COLUMNS)
    assert [ref.name for ref in found.operands] == ["x", "y", "z"]


@pytest.mark.slow
def test_an_index_of_the_same_dimension_stays_apart(traced):
    assert len(matches(traced, "x[y][z]", FLOATS, ROWS, "torch.randint(0, 30, (40,))")) == 2


@pytest.mark.slow
def test_one_element_a_row_is_left_to_the_loops(traced):
    assert matches(traced, "torch.gather(x, 1, y[:, None])", FLOATS, "torch.randint(0, 50, (20,))") == ()
