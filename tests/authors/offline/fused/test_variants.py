"""Strategies change the variant one after the other."""

import pytest

from cutegen_nb.authors.offline.fused.variants import (
    GRID_STRIDE,
    IN_FLIGHT,
    KNOWN,
    SIMPLEST,
    VECTORISE,
    WARP_PER_ROW,
    fold,
)
from cutegen_nb.core.errors import Declined


def test_later_steps_keep_what_earlier_ones_brought():
    variant = fold(SIMPLEST, (VECTORISE, IN_FLIGHT, WARP_PER_ROW))
    assert (variant.vectors, variant.in_flight, variant.lanes) == (True, 4, "warp")
    assert not variant.grid_stride
    assert fold(SIMPLEST, ()) == SIMPLEST


def test_every_known_step_changes_the_simplest_variant():
    assert GRID_STRIDE in KNOWN
    assert all(fold(SIMPLEST, (name,)) != SIMPLEST for name in KNOWN)


def test_an_unknown_step_is_declined_by_name():
    with pytest.raises(Declined, match="'magic'"):
        fold(SIMPLEST, ("magic",))
