"""Gathers at both sizes, and the extents of their results."""

import pytest

from cutegen_nb.authors.offline.operators.gathers.attributes import AxisMap, Gather, IndexedAxis
from cutegen_nb.authors.offline.operators.gathers.settled import keeps_last, output_extents, settled
from cutegen_nb.core.errors import Declined


def gather(*sources, rank=2):
    return Gather(sources=sources, rank=rank)


def test_of_several_ways_the_one_that_fits_both_sizes_is_kept():
    full = gather((AxisMap(0, "roll", 53), AxisMap(0, "roll", -3)), (AxisMap(1),))
    scaled = gather((AxisMap(0, "roll", 5), AxisMap(0, "roll", -3)), (AxisMap(1),))
    assert settled(full, scaled).sources[0] == (AxisMap(0, "roll", -3),)


def test_a_way_that_depends_on_the_size_is_declined():
    with pytest.raises(Declined, match="size"):
        settled(gather((AxisMap(0, "shift", 4, 4),), rank=1), gather((AxisMap(0, "shift", 2, 2),), rank=1))


def test_extents_come_from_indices_first():
    indexed = gather((AxisMap(0),), IndexedAxis(1, (0, 1)))
    assert output_extents(indexed) == ("{1}.shape[0]", "{1}.shape[1]")
    padded = gather((AxisMap(0),), (AxisMap(1, "shift", 1, 3),))
    assert output_extents(padded) == ("{0}.shape[0]", "{0}.shape[1] + 3")


def test_vectors_need_the_last_dimension_as_it_is():
    assert keeps_last(gather((AxisMap(0, "roll", 1),), (AxisMap(1),)))
    assert not keeps_last(gather((AxisMap(0),), (AxisMap(1, "reverse"),)))
    assert not keeps_last(gather(IndexedAxis(1, (0, 1)), (AxisMap(1),)))
