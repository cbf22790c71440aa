"""Shares of wrong elements by tile of an output."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.evaluator.numerics.error_tiles import by_tiles


def mask(shape, *places):
    bad = torch.zeros(shape, dtype=torch.bool)
    for place in places:
        bad[place] = True
    return bad


@pytest.mark.parametrize("bad", [mask((64, 64)), ~mask((64, 64)), mask((4, 4), (0, 0)), mask(20, 3)])
def test_nothing_everything_and_what_is_smaller_than_a_tile_have_no_tiles(bad):
    assert by_tiles(bad) is None


@pytest.mark.parametrize(
    ("bad", "shape", "count", "tiles"),
    [
        (mask((256, 192), (slice(64, 128), slice(0, 64))), (64, 64), 12, {(1, 0)}),
        (mask((100, 100), (slice(64, 100), slice(64, 100))), (64, 64), 4, {(1, 1)}),  # cut off at the edge
        (mask((2, 8, 32), (1, slice(None), slice(16, 32))), (8, 8), 8, {(1, 2), (1, 3)}),  # rows together
        (mask(4096, slice(512, 1024)), (512,), 8, {(1,)}),
    ],
)
def test_the_largest_tile_that_is_wrong_or_right_throughout_is_taken(bad, shape, count, tiles):
    found = by_tiles(bad)
    assert found.whole
    assert (found.shape, found.count, found.bad) == (shape, count, len(tiles))
    assert {item.tile for item in found.shares} == tiles
    assert {item.bad_fraction for item in found.shares} == {1.0}


def test_of_scattered_elements_the_worst_eight_tiles_are_given_worst_first():
    bad = mask((512, 512))
    for number in range(20):
        bad[number % 8 * 64, : number + 1] = True
        bad[64 * (number % 8) + 1, 100 + number] = True
    found = by_tiles(bad)
    assert not found.whole
    assert found.shape == (64, 64)
    fractions = [item.bad_fraction for item in found.shares]
    assert len(fractions) == 8
    assert fractions == sorted(fractions, reverse=True)
