"""Symbolic sizes: dimensions as products of the inputs' own."""

import pytest

from cutegen_nb.authors.offline.graph.ir import ONE, Extent
from cutegen_nb.authors.offline.matmul.sizes import broadcast, regrouped, same, sizes_of
from cutegen_nb.core.errors import Declined

SHAPE = (Extent(8, 4), Extent(3, 3), Extent(5, 2))


def test_a_view_that_joins_dimensions_is_their_product():
    sizes = regrouped(sizes_of("A", SHAPE), (SHAPE[0] * SHAPE[1], SHAPE[2]))
    assert [one.text for one in sizes] == ["A.shape[0] * A.shape[1]", "A.shape[2]"]
    assert sizes[0].extent == Extent(24, 12)


def test_a_dimension_of_one_needs_no_factor():
    sizes = regrouped(sizes_of("A", SHAPE), (ONE, *SHAPE))
    assert sizes[0].text == "1"


def test_a_split_at_an_unknown_number_is_declined():
    with pytest.raises(Declined, match="the size 2 of a reshape"):
        regrouped(sizes_of("A", SHAPE), (Extent(2, 2), Extent(60, 12)))


def test_broadcasting_takes_the_dimension_that_is_not_one():
    left, right = sizes_of("A", SHAPE), sizes_of("b", (ONE, SHAPE[2]))
    assert same(broadcast(left, right), left)
    assert [one.text for one in broadcast(right, left)] == ["A.shape[0]", "A.shape[1]", "b.shape[1]"]
