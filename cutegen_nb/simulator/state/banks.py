"""Shared-memory bank conflicts: passes ("wavefronts") over the 32 banks of 4 bytes.

In one pass each bank delivers or accepts one 4-byte word, for every lane served together that asks for that
word. The CUDA C++ Programming Guide ("Shared Memory") states this rule for 4-byte words. The rules for wider
accesses, atomics and asynchronous copies follow the counts of Nsight Compute on an H200 (hardware suite of
this project, 2026-11-21):

- Accesses of 8 bytes a lane are served by half-warps, of 16 bytes by quarter-warps. For a load, the two
  halves of a warp (the two quarters of a half) are served together under one condition. Every active lane
  ``i`` has the address of lane ``i ^ 1``, or every active lane has that of lane ``i ^ 2`` (NVIDIA Developer
  Forums, "Unexpected shared memory bank conflict"). An inactive partner counts as having the same address.
- ``ldmatrix`` and ``stmatrix`` transfer one 8×8 matrix, eight rows of 16 bytes, at a time.
- Atomics serialise the lanes that address one word. If all lanes of a warp address one word and the operation
  can be combined, the assembler lets one lane act for all.
- An asynchronous copy transfers the bytes of one 128-byte line of global memory at a time. Past the L1 cache
  (``.cg``) a 32-byte piece of shared memory is filled from one sector per pass, and a sector is requested
  again in each pass that needs it.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from cutegen_nb.core.profile import SECTOR_BYTES
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.ptx.model import Immediate, Instruction
from cutegen_nb.simulator.state.batch import WARP

BANKS = 32
"""Banks of shared memory (CUDA C++ Programming Guide, "Shared Memory")."""
BANK_BYTES = 4
"""Bytes of a word, the width of a bank."""
LINE_BYTES = 128
"""Bytes of a cache line of global memory."""
_NARROW = 4
"""Widest access, in bytes a lane, for which a whole warp is served together."""
_COMBINED = frozenset({"add", "and", "or", "xor", "min", "max"})
"""Atomic operations that one lane can carry out for all lanes at one word."""
_WORD_BITS = 24
"""Bits of a word's number in a sort key; the number of the group served together is above them."""

_known: dict[tuple[bytes, bytes, bytes, int, int], tuple[int, int]] = {}
_known_copies: dict[tuple[bytes, bytes, bytes, int, bool], tuple[int, int, int]] = {}
_CACHED = 20_000
"""Entries of each cache above; a cache with more is emptied."""


class BankRule(IntEnum):
    """Rule by which lanes of a warp are grouped into passes."""

    LOAD = 0
    """Loads: halves (quarters) of a warp are served together if their lanes have equal addresses pairwise."""
    APART = 1
    """Stores and matrix rows: halves (quarters) of a warp are served apart, whatever their addresses."""
    TURNS = 2
    """Atomics: lanes that address one word are serialised."""
    COMBINED = 3
    """Atomics of up to 32 bits whose operation one lane can carry out for all lanes at one word."""


def service_of(instruction: Instruction) -> BankRule:
    """Return the rule by which an instruction's lanes are served."""
    if instruction.opcode in {"ld", "ldu"}:
        return BankRule.LOAD
    if instruction.opcode not in {"atom", "red"}:
        return BankRule.APART
    if instruction.opcode == "red" and _counts(instruction):
        return BankRule.APART
    whole = instruction.modifiers[-1][:1] in {"u", "s", "b"}
    combined = whole and not _COMBINED.isdisjoint(instruction.modifiers)
    return BankRule.COMBINED if combined else BankRule.TURNS


def _counts(instruction: Instruction) -> bool:
    """Return whether a reduction adds the constant 1; a machine instruction that counts lanes serves it."""
    last = instruction.operands[-1]
    return "add" in instruction.modifiers and isinstance(last, Immediate) and last.value == 1


def cta_wavefronts(
    offsets: Array, warps: Array, lanes: Array, width: int, service: BankRule = BankRule.LOAD
) -> tuple[int, int]:
    """Passes and fewest possible passes of one CTA's request, cached; see :func:`wavefronts`."""
    key = (offsets.tobytes(), warps.tobytes(), lanes.tobytes(), width, int(service))
    known = _known.get(key)
    if known is None:
        if len(_known) > _CACHED:
            _known.clear()
        known = _known[key] = wavefronts(offsets, warps, lanes, width, service)
    return known


def wavefronts(
    addresses: Array, warps: Array, lanes: Array, width: int, service: BankRule = BankRule.LOAD
) -> tuple[int, int]:
    """Passes and fewest possible passes of a request, summed over warps.

    Args:
        addresses: byte address of each active thread, one-dimensional int64.
        warps: warp of each active thread.
        lanes: lane of each active thread within its warp.
        width: bytes each thread asks for: 1, 2, 4, 8 or 16.
        service: the rule by which lanes are served together.
    """
    if not len(addresses):
        return 0, 0
    group = _groups(addresses, warps, lanes, width, service)
    keys = group[:, None] << _WORD_BITS | _words(addresses, width)
    taken = np.unique(keys)  # lanes of one group that ask for the same word share one access to it
    ideal = _ideal(taken >> _WORD_BITS)
    if service is BankRule.LOAD or service is BankRule.APART:
        return _busiest(taken), ideal
    if service is BankRule.COMBINED and width <= _NARROW:
        keys = _combined(keys, warps)
    return _busiest(np.sort(keys.ravel())), ideal


def _words(addresses: Array, width: int) -> Array:
    """Numbers of the 4-byte words that each access covers, shape (threads, words)."""
    return (addresses // BANK_BYTES)[:, None] + np.arange(max(1, width // BANK_BYTES))[None]


def _busiest(keys: Array) -> int:
    """Sum over groups of the words in the busiest bank; ``keys`` are sorted, group above word."""
    # Word w lies in bank w % 32. A group needs as many passes as its busiest bank has words.
    groups, banks = keys >> _WORD_BITS, keys & (BANKS - 1)
    first = np.ones(len(keys), np.bool_)
    first[1:] = groups[1:] != groups[:-1]
    slots = (np.cumsum(first) - 1) * BANKS + banks
    counts = np.bincount(slots, minlength=int(np.count_nonzero(first)) * BANKS)
    return int(counts.reshape(-1, BANKS).max(axis=1).sum())


def _ideal(groups: Array) -> int:
    """Sum over groups of ceil(words / 32); ``groups``, ascending, has one entry per word."""
    return int((-(-np.unique(groups, return_counts=True)[1] // BANKS)).sum())


def _groups(addresses: Array, warps: Array, lanes: Array, width: int, service: BankRule) -> Array:
    """Number of the group that each thread is served with, ascending with warps and lanes."""
    parts = max(1, width // _NARROW)  # groups of a warp: 1 for 4 bytes a lane, 2 for 8, 4 for 16
    if parts == 1:
        return warps
    share = WARP // parts
    group = warps * parts + lanes // share
    if service is not BankRule.LOAD:
        return group
    # Two neighbouring groups are one if all lanes i have the address of lane i ^ 1, or all that of i ^ 2.
    # Addresses of inactive lanes are -1 in the table and match any partner.
    pair = group // 2
    first, number = np.unique(pair, return_inverse=True)
    table = np.full((len(first), 2 * share), -1, np.int64)
    column = lanes % (2 * share)
    table[number, column] = addresses
    partners = np.arange(2 * share)
    agrees = np.zeros(len(first), np.bool_)
    for step in (1, 2):
        other = table[:, partners ^ step]
        agrees |= ((other == table) | (other < 0) | (table < 0)).all(axis=1)
    return np.where(agrees[number], pair * 2, group)


def _combined(keys: Array, warps: Array) -> Array:
    """Drop all lanes but the first of each warp whose active lanes all address one word."""
    first = np.ones(len(warps), np.bool_)
    first[1:] = warps[1:] != warps[:-1]
    starts = np.flatnonzero(first)
    number = np.cumsum(first) - 1
    low = np.minimum.reduceat(keys[:, 0], starts)
    high = np.maximum.reduceat(keys[:, 0], starts)
    return keys[first | (low != high)[number]]


# -- asynchronous copies -------------------------------------------------------------------------------------
def cta_copy(
    sources: Array, targets: Array, warps: Array, size: int, *, bypass: bool
) -> tuple[int, int, int]:
    """Passes, fewest passes and sectors of one CTA's copy, cached; see :func:`copy_passes`."""
    key = (sources.tobytes(), targets.tobytes(), warps.tobytes(), size, bypass)
    known = _known_copies.get(key)
    if known is None:
        if len(_known_copies) > _CACHED:
            _known_copies.clear()
        known = _known_copies[key] = copy_passes(sources, targets, warps, size, bypass=bypass)
    return known


def copy_passes(
    sources: Array, targets: Array, warps: Array, size: int, *, bypass: bool
) -> tuple[int, int, int]:
    """Passes, fewest passes and sectors of asynchronous copies (``cp.async``), summed over warps.

    Args:
        sources: global byte address that each active thread reads, one-dimensional int64; negative for a
            thread that only writes zeros. Any multiple of 128 may be added to all of a warp.
        targets: byte address in shared memory that each active thread writes.
        warps: warp of each active thread, ascending.
        size: bytes each thread copies: 4, 8 or 16.
        bypass: True if the copy goes past the L1 cache (``.cg``).
    """
    if not len(sources):
        return 0, 0, 0
    words = _words(targets, size)
    ideal = _ideal(np.unique(warps[:, None] << _WORD_BITS | words) >> _WORD_BITS)
    # Groups are the (warp, 128-byte line) pairs. Threads without a source have -1, hence line -1.
    line = _numbered(warps, sources // LINE_BYTES)
    sector = _numbered(warps, sources // SECTOR_BYTES)
    reads = sources >= 0
    passes = _per_group(line, words)
    if not bypass:
        return int(passes.sum()), ideal, len(np.unique(sector[reads]))
    # Past L1 one pass fills a 32-byte piece of shared memory from one sector only. So a line needs at least
    # as many passes as the largest number of distinct source sectors of any piece.
    pieces = np.unique(np.stack((line, targets // SECTOR_BYTES, sector), axis=1), axis=0)
    places, counts = np.unique(pieces[:, :2], axis=0, return_counts=True)
    filled = np.zeros(len(passes), np.int64)
    np.maximum.at(filled, places[:, 0], counts)
    # A sector is requested once in each pass that needs it.
    again = _per_group(_numbered(sector[reads], sector[reads]), words[reads])
    return int(np.maximum(passes, filled).sum()), ideal, int(again.sum())


def _numbered(first: Array, second: Array) -> Array:
    """Number the distinct pairs (first, second) from 0 in ascending order; return each element's number."""
    return np.unique(np.stack((first, second), axis=1), axis=0, return_inverse=True)[1].ravel()


def _per_group(group: Array, words: Array) -> Array:
    """Number of distinct words in each group's busiest bank; groups are numbered from 0 without gaps."""
    if not len(group):
        return np.zeros(0, np.int64)
    keys = np.unique(group[:, None] << _WORD_BITS | words)
    slots = (keys >> _WORD_BITS) * BANKS + (keys & (BANKS - 1))
    counts = np.bincount(slots, minlength=(int(group.max()) + 1) * BANKS)
    return counts.reshape(-1, BANKS).max(axis=1)
