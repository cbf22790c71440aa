"""Sectors against counting by hand, one thread after the other."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutegen_nb.simulator.state.access_patterns import cta_sectors, request_sectors, runs_of

WIDTHS = [1, 2, 4, 8, 16]


def by_hand_sectors(addresses, warps, width):
    """Sectors that each warp's bytes lie in, and the fewest that could hold its distinct bytes."""
    touched = least = 0
    for warp in set(warps):
        mine = [address for address, owner in zip(addresses, warps, strict=True) if owner == warp]
        held = {byte for address in mine for byte in range(address, address + width)}
        touched += len({byte // 32 for byte in held})
        least += -(-len(held) // 32)
    return touched, least


@st.composite
def requests(draw, reach=4096):
    """Active threads of a few warps with an aligned address each: scattered, strided, or all near one place."""
    width = draw(st.sampled_from(WIDTHS))
    threads = draw(st.integers(1, 96))
    seed = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pattern = draw(st.sampled_from(["scattered", "strided", "near", "xor"]))
    index = np.arange(threads)
    slots = reach // width
    if pattern == "scattered":
        chosen = seed.integers(0, slots, threads)
    elif pattern == "strided":
        chosen = (index * draw(st.integers(0, 40)) + draw(st.integers(0, 8))) % slots
    elif pattern == "near":
        chosen = seed.integers(0, max(1, min(slots, 12)), threads)
    else:
        chosen = (index ^ draw(st.integers(0, 31))) * draw(st.sampled_from([1, 2, 3, 4, 8])) % slots
    active = seed.random(threads) < draw(st.sampled_from([1.0, 0.9, 0.4, 0.05]))
    kept = np.flatnonzero(active)
    return chosen[kept].astype(np.int64) * width, kept // 32, kept % 32, width


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@given(request=requests())
def test_sectors_are_those_that_the_bytes_lie_in(request):
    addresses, warps, _, width = request
    expected = by_hand_sectors(addresses.tolist(), warps.tolist(), width)

    assert request_sectors(addresses, warps, width) == expected


@settings(max_examples=200, deadline=None)
@given(request=requests(), phase=st.sampled_from([0, 4, 8, 16]))
def test_sectors_of_a_cta_depend_on_where_its_base_lies_in_a_sector(request, phase):
    addresses, warps, _, width = request
    if not len(addresses) or phase % width:
        return
    moved = addresses + phase
    total, ideal, distinct = cta_sectors(addresses, warps, phase, width)

    assert (total, ideal) == by_hand_sectors(moved.tolist(), warps.tolist(), width)
    assert distinct.tolist() == sorted({address // 32 for address in moved.tolist()})


@pytest.mark.parametrize("width", WIDTHS)
def test_neighbours_need_no_more_than_the_ideal(width):
    lanes = np.arange(32)
    addresses = lanes * width
    warps = np.zeros(32, np.int64)

    assert request_sectors(addresses, warps, width) == (width, width)


@pytest.mark.parametrize("width", WIDTHS)
def test_one_place_for_all_is_one_sector(width):
    assert request_sectors(np.full(32, 256, np.int64), np.zeros(32, np.int64), width) == (1, 1)


@settings(max_examples=200, deadline=None)
@given(
    inner=st.integers(1, 20), outer=st.integers(1, 8), steps=st.tuples(st.integers(-40, 40), st.integers(-99, 99)),
    first=st.integers(-100, 100),
)  # fmt: skip
def test_a_pattern_found_in_numbers_gives_the_numbers_back(inner, outer, steps, first):
    numbers = np.array(
        [first + o * steps[1] + i * steps[0] for o in range(outer) for i in range(inner)], np.int64
    )
    found = runs_of(numbers)
    if found is None:
        assert len({b - a for a, b in pairwise(numbers.tolist())}) > 1
        return
    rebuilt = [
        found.first + o * found.outer_step + i * found.inner_step
        for o in range(found.outer)
        for i in range(found.inner)
    ]

    assert rebuilt == numbers.tolist()
