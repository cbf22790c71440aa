"""Passes over shared memory's banks: against counting by hand, and as Nsight Compute counts them on an H200."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutegen_nb.simulator.ptx.model import Immediate, Instruction
from cutegen_nb.simulator.state.banks import (
    BankRule,
    copy_passes,
    cta_copy,
    cta_wavefronts,
    service_of,
    wavefronts,
)

WIDTHS = [1, 2, 4, 8, 16]
LANES = np.arange(32)
WARP = np.zeros(32, np.int64)


def busiest(words):
    banks = [word % 32 for word in words]
    return max(banks.count(bank) for bank in banks)


def words_of(address, width):
    return {byte // 4 for byte in range(address, address + width)}


def agree(asked, step):
    return all(asked.get(lane ^ step, address) == address for lane, address in asked.items())


def parts_of(asked, width, service):
    """Lanes that are served together: {lane: address} of a warp, cut up."""
    if width <= 4:
        return [asked]
    together = {8: 16, 16: 8}[width]
    parts = []
    for first in range(0, 32, 2 * together):
        pair = {lane: at for lane, at in asked.items() if first <= lane < first + 2 * together}
        if service is BankRule.LOAD and pair and (agree(pair, 1) or agree(pair, 2)):
            parts.append(pair)
            continue
        parts += [
            {lane: at for lane, at in pair.items() if low <= lane < low + together}
            for low in (first, first + together)
        ]
    return [part for part in parts if part]


def by_hand(addresses, warps, lanes, width, service):
    """Passes and fewest passes, one warp and one lane after the other."""
    passes = ideal = 0
    for warp in sorted(set(warps)):
        asked = {lane: at for at, owner, lane in zip(addresses, warps, lanes, strict=True) if owner == warp}
        for part in parts_of(asked, width, service):
            distinct = set().union(*(words_of(at, width) for at in part.values()))
            ideal += -(-len(distinct) // 32)
            if service in {BankRule.LOAD, BankRule.APART}:
                passes += busiest(distinct)
            elif service is BankRule.COMBINED and len({at // 4 for at in asked.values()}) == 1 and width <= 4:
                passes += 1
            else:
                passes += busiest([word for at in part.values() for word in words_of(at, width)])
    return passes, ideal


@st.composite
def requests(draw, reach=4096):
    """Active threads of a few warps with an aligned address each: scattered, strided, shared by neighbours."""
    width = draw(st.sampled_from(WIDTHS))
    threads = draw(st.integers(1, 96))
    seed = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    index = np.arange(threads)
    slots = reach // width
    scattered = seed.integers(0, slots, max(threads, 64))
    pattern = draw(st.sampled_from(["scattered", "strided", "near", "pairs", "twos", "mirrored", "one"]))
    chosen = {
        "scattered": scattered[:threads],
        "strided": (index * draw(st.integers(0, 40)) + draw(st.integers(0, 8))) % slots,
        "near": scattered[:threads] % 12,
        "pairs": scattered[index >> 1],
        "twos": scattered[index & ~2],
        "mirrored": scattered[index & draw(st.sampled_from([7, 15]))],
        "one": scattered[:1].repeat(threads),
    }[pattern]
    kept = np.flatnonzero(seed.random(threads) < draw(st.sampled_from([1.0, 1.0, 0.5, 0.05])))
    return chosen[kept].astype(np.int64) * width, kept // 32, kept % 32, width


@pytest.mark.long
@settings(max_examples=600, deadline=None)
@given(request=requests(), service=st.sampled_from(list(BankRule)))
def test_passes_are_those_counted_by_hand(request, service):
    addresses, warps, lanes, width = request
    expected = by_hand(addresses.tolist(), warps.tolist(), lanes.tolist(), width, service)

    assert wavefronts(addresses, warps, lanes, width, service) == expected
    # The remembered form must know a request by all that decides its count.
    assert cta_wavefronts(addresses, warps, lanes, width, service) == expected
    assert cta_wavefronts(addresses, warps, lanes, width, service) == expected


def test_requests_of_other_warps_at_the_same_offsets_are_not_taken_for_one_another():
    offsets, lanes = np.zeros(3, np.int64), np.arange(3)

    assert cta_wavefronts(offsets, np.array([0, 0, 0]), lanes, 4) == (1, 1)
    assert cta_wavefronts(offsets, np.array([0, 0, 1]), lanes, 4) == (2, 2)


@pytest.mark.parametrize(
    ("addresses", "width", "passes"),
    [
        (LANES * 4, 4, 1), (LANES * 8, 4, 2), (LANES * 12, 4, 1), (LANES * 128, 4, 32), (LANES * 132, 4, 1),
        (LANES * 2, 2, 1), (LANES, 1, 1), (LANES % 2 * 128, 4, 2),
        (LANES * 8, 8, 2), (LANES * 16, 8, 4), (LANES * 128, 8, 32), (LANES // 4 * 8, 8, 1),
        (LANES % 16 * 8, 8, 2),
        (LANES * 16, 16, 4), (LANES * 32, 16, 8), (LANES * 128, 16, 32), (LANES * 144, 16, 4),
        (LANES * 0, 16, 2), (LANES // 2 * 16, 16, 2), (LANES % 8 * 16, 16, 4),
    ],
)  # fmt: skip
def test_loads_take_as_many_passes_as_on_an_h200(addresses, width, passes):
    assert wavefronts(addresses, WARP, LANES, width)[0] == passes


@pytest.mark.parametrize(
    ("rows", "pitch", "passes"),
    [
        (32, 16, 4),
        (16, 16, 2),
        (8, 16, 1),
        (32, 128, 32),
        (16, 128, 16),
        (8, 128, 8),
        (32, 144, 4),
        (32, 32, 8),
    ],
)
def test_matrices_take_as_many_passes_as_on_an_h200(rows, pitch, passes):
    lanes = np.arange(rows)

    assert wavefronts(lanes * pitch, lanes * 0, lanes, 16, BankRule.APART)[0] == passes


@pytest.mark.parametrize(
    ("addresses", "passes"), [(LANES * 4, 1), (LANES % 8 * 4, 4), (LANES * 0, 1), (LANES * 128, 32)]
)
def test_sums_take_turns_as_on_an_h200(addresses, passes):
    assert wavefronts(addresses, WARP, LANES, 4, BankRule.COMBINED)[0] == passes


@pytest.mark.parametrize(
    ("name", "last", "service"),
    [
        ("ld.shared.b32", 0, BankRule.LOAD), ("st.shared.b32", 0, BankRule.APART), ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", 0, BankRule.APART),
        ("atom.shared.add.u32", 1, BankRule.COMBINED), ("atom.shared.exch.b32", 1, BankRule.TURNS),
        ("atom.shared.add.f32", 1.0, BankRule.TURNS), ("red.shared.add.u32", 2, BankRule.COMBINED),
        ("red.shared.add.u32", 1, BankRule.APART),  # the machine counts the lanes that meet
    ],
)  # fmt: skip
def test_an_instruction_is_served_by_its_kind(name, last, service):
    opcode, *modifiers = name.split(".")
    instruction = Instruction(opcode=opcode, modifiers=tuple(modifiers), operands=(Immediate(value=last),))

    assert service_of(instruction) is service


COPIES = {
    "4 bytes, dense": (LANES * 4, LANES * 4, 4, False, 1, 4),
    "8 bytes, dense": (LANES * 8, LANES * 8, 8, False, 2, 8),
    "16 bytes, dense": (LANES * 16, LANES * 16, 16, False, 4, 16),
    "16 bytes, dense, past L1": (LANES * 16, LANES * 16, 16, True, 4, 16),
    "4 bytes from 32 sectors": (LANES * 32, LANES * 4, 4, False, 8, 32),
    "half sectors, past L1": (LANES * 64, LANES * 16, 16, True, 32, 32),
    "rows of 128 bytes, past L1": (LANES // 8 * 512 + LANES % 8 * 16, LANES * 16, 16, True, 4, 16),
    "one bank, past L1": (LANES * 16, LANES * 128, 16, True, 32, 32),
    "rows of 64 bytes": (LANES // 4 * 256 + LANES % 4 * 16, LANES * 16, 16, False, 8, 16),
}
"""Sources, targets, bytes, past L1 → passes and sectors of a warp, as an H200's counters have them."""


@pytest.mark.parametrize("name", COPIES)
def test_asynchronous_copies_take_as_many_passes_and_sectors_as_on_an_h200(name):
    sources, targets, size, bypass, passes, sectors = COPIES[name]
    found = copy_passes(sources, targets, WARP, size, bypass=bypass)

    assert (found[0], found[2]) == (passes, sectors)
    assert found[1] <= found[0]
    assert cta_copy(sources, targets, WARP, size, bypass=bypass) == found
    both = copy_passes(np.tile(sources, 2), np.tile(targets, 2), np.repeat([0, 1], 32), size, bypass=bypass)
    assert both == tuple(2 * one for one in found)


def test_an_exchanged_row_costs_no_more_than_a_straight_one():
    """The swizzles of CuTe exchange 16-byte pieces within a row of 128 bytes."""
    rows, pieces = LANES // 8, LANES % 8
    targets = rows * 128 + (pieces ^ rows) * 16
    sources = rows * 512 + pieces * 16

    assert copy_passes(sources, targets, WARP, 16, bypass=True) == (4, 4, 16)


def test_threads_that_only_write_zeros_ask_for_no_sector():
    sources = np.where(LANES < 16, LANES * 16, -1)

    assert copy_passes(sources, LANES * 16, WARP, 16, bypass=True)[2] == 8
    assert copy_passes(np.full(32, -1), LANES * 16, WARP, 16, bypass=False) == (4, 4, 0)
    nobody = np.zeros(0, np.int64)
    assert copy_passes(nobody, nobody, nobody, 16, bypass=True) == (0, 0, 0)
