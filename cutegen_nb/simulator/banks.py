"""Passes over shared memory's 32 banks of 4 bytes ("wavefronts"): the one place that knows the rules.

A pass gives, or takes, one 4-byte word of each bank, for every lane of those served together that asks for
it. The CUDA C++ Programming Guide ("Shared Memory") tells as much for words of 4 bytes. What follows for
wider accesses, atomics and asynchronous copies is what Nsight Compute counts on an H200 (hardware suite of
this project, 2026-11-21):

- 8 bytes a lane are served by half-warps, 16 bytes by quarter-warps. Of a load, two halves of a warp (two
  quarters of a half) are served as one where every active lane ``i`` has the address of lane ``i ^ 1``, or
  every one that of lane ``i ^ 2`` (NVIDIA Developer Forums, "Unexpected shared memory bank conflict"); an
  inactive partner agrees with anybody.
- ``ldmatrix`` and ``stmatrix`` pass one 8×8 matrix, eight rows of 16 bytes, at a time.
- Atomics let lanes that meet at one word take turns. Where all lanes of a warp meet at one word and the
  operation can be combined, the assembler lets one lane act for all.
- An asynchronous copy passes what comes from one 128-byte line of global memory at a time. Past the L1 cache
  (``.cg``) a 32-byte piece of shared memory is filled from one sector a pass, and a sector is asked for again
  in each pass that needs it.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from cutegen_nb.core.profile import SECTOR_BYTES
from cutegen_nb.simulator.lanes import WARP
from cutegen_nb.simulator.ptx_model import Immediate, Instruction
from cutegen_nb.simulator.values import Array

BANKS = 32
BANK_BYTES = 4
LINE_BYTES = 128
_NARROW = 4
"""Up to this many bytes a lane, a whole warp is served together."""
_COMBINED = frozenset({"add", "and", "or", "xor", "min", "max"})
_WORD_BITS = 24
"""Bits that a word's number in shared memory needs at most; a group's number stands above them."""

_known: dict[tuple[bytes, bytes, bytes, int, int], tuple[int, int]] = {}
_known_copies: dict[tuple[bytes, bytes, bytes, int, bool], tuple[int, int, int]] = {}
_CACHED = 20_000


class Service(IntEnum):
    """How lanes of a warp are served."""

    LOAD = 0
    """Loads: neighbours that agree are served together."""
    APART = 1
    """Stores and rows of matrices: halves and quarters of a warp, whatever their addresses."""
    TURNS = 2
    """Atomics: lanes that meet at a word take turns."""
    COMBINED = 3
    """Atomics of an operation, of up to 32 bits, that one lane can do for all that meet at one word."""


def service_of(instruction: Instruction) -> Service:
    """How an instruction's lanes are served."""
    if instruction.opcode in {"ld", "ldu"}:
        return Service.LOAD
    if instruction.opcode not in {"atom", "red"}:
        return Service.APART
    if instruction.opcode == "red" and _counts(instruction):
        return Service.APART
    whole = instruction.modifiers[-1][:1] in {"u", "s", "b"}
    combined = whole and not _COMBINED.isdisjoint(instruction.modifiers)
    return Service.COMBINED if combined else Service.TURNS


def _counts(instruction: Instruction) -> bool:
    """Whether it adds 1 and nobody reads the result: an instruction of the machine counts lanes for that."""
    last = instruction.operands[-1]
    return "add" in instruction.modifiers and isinstance(last, Immediate) and last.value == 1


def cta_wavefronts(
    offsets: Array, warps: Array, lanes: Array, width: int, service: Service = Service.LOAD
) -> tuple[int, int]:
    """Passes and fewest passes of one CTA's request, remembered; see :func:`wavefronts`."""
    key = (offsets.tobytes(), warps.tobytes(), lanes.tobytes(), width, int(service))
    known = _known.get(key)
    if known is None:
        if len(_known) > _CACHED:
            _known.clear()
        known = _known[key] = wavefronts(offsets, warps, lanes, width, service)
    return known


def wavefronts(
    addresses: Array, warps: Array, lanes: Array, width: int, service: Service = Service.LOAD
) -> tuple[int, int]:
    """Passes and fewest passes, summed over warps.

    Args:
        addresses: byte address of each active thread, one-dimensional int64.
        warps: warp of each of them.
        lanes: lane within its warp.
        width: bytes each thread asks for: 1, 2, 4, 8 or 16.
        service: the rule by which lanes are served together.
    """
    if not len(addresses):
        return 0, 0
    group = _groups(addresses, warps, lanes, width, service)
    keys = group[:, None] << _WORD_BITS | _words(addresses, width)
    taken = np.unique(keys)  # a word asked for twice is served once
    ideal = _ideal(taken >> _WORD_BITS)
    if service is Service.LOAD or service is Service.APART:
        return _busiest(taken), ideal
    if service is Service.COMBINED and width <= _NARROW:
        keys = _combined(keys, warps)
    return _busiest(np.sort(keys.ravel())), ideal


def _words(addresses: Array, width: int) -> Array:
    """Numbers of the 4-byte words of each address, shape (threads, words)."""
    return (addresses // BANK_BYTES)[:, None] + np.arange(max(1, width // BANK_BYTES))[None]


def _busiest(keys: Array) -> int:
    """Sum over groups of the words of the busiest bank; ``keys`` are sorted, group above word."""
    groups, banks = keys >> _WORD_BITS, keys & (BANKS - 1)
    first = np.ones(len(keys), np.bool_)
    first[1:] = groups[1:] != groups[:-1]
    slots = (np.cumsum(first) - 1) * BANKS + banks
    counts = np.bincount(slots, minlength=int(np.count_nonzero(first)) * BANKS)
    return int(counts.reshape(-1, BANKS).max(axis=1).sum())


def _ideal(groups: Array) -> int:
    """Fewest passes for words whose groups, ascending, are given: 32 words each."""
    return int((-(-np.unique(groups, return_counts=True)[1] // BANKS)).sum())


def _groups(addresses: Array, warps: Array, lanes: Array, width: int, service: Service) -> Array:
    """Number of the group that each thread is served with, ascending as warps and lanes are."""
    parts = max(1, width // _NARROW)
    if parts == 1:
        return warps
    share = WARP // parts
    group = warps * parts + lanes // share
    if service is not Service.LOAD:
        return group
    # Two neighbouring groups are one where all their lanes agree with their partners.
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
    """Without the lanes of a warp whose every lane meets at one word, but for the first of them."""
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
    """Passes, fewest passes and sectors of one CTA's copy, remembered; see :func:`copy_passes`."""
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
    """Passes, fewest passes and sectors of asynchronous copies, summed over warps.

    Args:
        sources: where each active thread reads global memory, one-dimensional int64; negative for a thread
            that only writes zeros. Any multiple of 128 may be added to all of a warp.
        targets: where it writes shared memory.
        warps: warp of each thread, ascending.
        size: bytes each thread copies: 4, 8 or 16.
        bypass: whether the copy goes past the L1 cache (``.cg``).
    """
    if not len(sources):
        return 0, 0, 0
    words = _words(targets, size)
    ideal = _ideal(np.unique(warps[:, None] << _WORD_BITS | words) >> _WORD_BITS)
    line = _numbered(warps, sources // LINE_BYTES)
    sector = _numbered(warps, sources // SECTOR_BYTES)
    reads = sources >= 0
    passes = _per_group(line, words)
    if not bypass:
        return int(passes.sum()), ideal, len(np.unique(sector[reads]))
    # Distinct sources of each 32-byte piece of shared memory, the most of each line.
    pieces = np.unique(np.stack((line, targets // SECTOR_BYTES, sector), axis=1), axis=0)
    places, counts = np.unique(pieces[:, :2], axis=0, return_counts=True)
    filled = np.zeros(len(passes), np.int64)
    np.maximum.at(filled, places[:, 0], counts)
    again = _per_group(_numbered(sector[reads], sector[reads]), words[reads])
    return int(np.maximum(passes, filled).sum()), ideal, int(again.sum())


def _numbered(first: Array, second: Array) -> Array:
    """Numbers from 0 of the distinct pairs, in their order."""
    return np.unique(np.stack((first, second), axis=1), axis=0, return_inverse=True)[1].ravel()


def _per_group(group: Array, words: Array) -> Array:
    """Words of each group's busiest bank; groups are numbered from 0 without gaps."""
    if not len(group):
        return np.zeros(0, np.int64)
    keys = np.unique(group[:, None] << _WORD_BITS | words)
    slots = (keys >> _WORD_BITS) * BANKS + (keys & (BANKS - 1))
    counts = np.bincount(slots, minlength=(int(group.max()) + 1) * BANKS)
    return counts.reshape(-1, BANKS).max(axis=1)
