"""How the addresses of one request lie: strided runs, sectors, banks.

Sectors follow the memory hierarchy that Nsight Compute counts (32-byte sectors a request). Shared memory has
32 banks of 4 bytes; a request of 64-bit elements is served in two halves of the warp and one of 128-bit
elements in four quarters (CUDA C++ Programming Guide, "Shared Memory"), and lanes that read the same word
share a pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.core.profile import SECTOR_BYTES
from cutegen_nb.simulator.lanes import WARP
from cutegen_nb.simulator.values import Array

BANKS = 32
BANK_BYTES = 4
PASS_BYTES = BANKS * BANK_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Numbers that form ``outer`` runs of ``inner`` equally spaced ones, the runs equally spaced too."""

    first: int
    """First number."""
    outer: int
    """How many runs."""
    outer_step: int
    """From a run's first number to the next run's."""
    inner: int
    """Numbers in a run."""
    inner_step: int
    """From a number to the next in its run."""


_runs: dict[bytes, Runs | None] = {}
_sectors: dict[tuple[bytes, bytes, int, int], tuple[int, int, Array]] = {}
_banks: dict[tuple[bytes, bytes, bytes, int], tuple[int, int]] = {}
_CACHED = 20_000


def runs_of(numbers: Array) -> Runs | None:
    """The two-level pattern of a one-dimensional int64 array; None if it has none."""
    first = int(numbers[0])
    key = (numbers - numbers[0]).tobytes()
    if key not in _runs:
        if len(_runs) > _CACHED:
            _runs.clear()
        _runs[key] = _find_runs(numbers - numbers[0])
    found = _runs[key]
    if found is None:
        return None
    return Runs(
        first=first, outer=found.outer, outer_step=found.outer_step, inner=found.inner,
        inner_step=found.inner_step,
    )  # fmt: skip


def _find_runs(numbers: Array) -> Runs | None:
    count = len(numbers)
    if count == 1:
        return Runs(first=0, outer=1, outer_step=0, inner=1, inner_step=0)
    steps = np.diff(numbers)
    breaks = np.flatnonzero(steps != steps[0])
    inner = int(breaks[0]) + 1 if len(breaks) else count
    if count % inner:
        return None
    outer = count // inner
    outer_step = int(numbers[inner]) if outer > 1 else 0
    inner_step = int(steps[0])
    expected = np.arange(outer)[:, None] * outer_step + np.arange(inner)[None] * inner_step
    if not np.array_equal(expected.ravel(), numbers):
        return None
    return Runs(first=0, outer=outer, outer_step=outer_step, inner=inner, inner_step=inner_step)


def cta_sectors(offsets: Array, warps: Array, phase: int, width: int) -> tuple[int, int, Array]:
    """Sectors of one CTA's request.

    Args:
        offsets: byte offset of each active thread, one-dimensional int64.
        warps: warp of each of them, ascending.
        phase: what is added to the offsets, 0 … 31; the CTA's base address is ``phase`` past a sector.
        width: bytes each thread asks for, a power of two up to 32.

    Returns:
        Sectors summed over warps, the fewest that could carry the bytes, and the distinct sector numbers.
    """
    key = (offsets.tobytes(), warps.tobytes(), phase, width)
    known = _sectors.get(key)
    if known is None:
        if len(_sectors) > _CACHED:
            _sectors.clear()
        total, ideal = request_sectors(offsets + phase, warps, width)
        known = (total, ideal, np.unique((offsets + phase) // SECTOR_BYTES))
        _sectors[key] = known
    return known


def request_sectors(addresses: Array, warps: Array, width: int) -> tuple[int, int]:
    """Sectors and fewest sectors of requests, summed over warps.

    ``addresses`` of the active threads in lane order, ``warps`` ascending, both one-dimensional int64.
    """
    if not len(addresses):
        return 0, 0
    new_warp = np.empty(len(warps), np.bool_)
    new_warp[0] = True
    np.not_equal(warps[1:], warps[:-1], out=new_warp[1:])
    step = np.diff(addresses)
    if not np.all((step >= 0) | new_warp[1:]):
        # A warp's number above, an address below: one sort orders every warp's own addresses.
        base = int(addresses.min()) // SECTOR_BYTES * SECTOR_BYTES
        span = int(addresses.max()) - base + 1
        shift = max(span.bit_length(), 5)
        keys = np.sort((addresses - base) + (warps << shift))
        addresses, warps = (keys & ((1 << shift) - 1)) + base, keys >> shift
        new_warp[1:] = warps[1:] != warps[:-1]
        step = np.diff(addresses)
    new_address = new_warp.copy()
    new_address[1:] |= step != 0
    sector = addresses // SECTOR_BYTES
    new_sector = new_warp.copy()
    new_sector[1:] |= sector[1:] != sector[:-1]
    distinct = np.add.reduceat(new_address, np.flatnonzero(new_warp), dtype=np.int64)
    ideal = -(-distinct * width // SECTOR_BYTES)
    return int(np.count_nonzero(new_sector)), int(ideal.sum())


def cta_wavefronts(offsets: Array, warps: Array, lanes: Array, width: int) -> tuple[int, int]:
    """Passes over shared memory's banks, and the fewest, for one CTA; see :func:`wavefronts`."""
    key = (offsets.tobytes(), warps.tobytes(), lanes.tobytes(), width)
    known = _banks.get(key)
    if known is None:
        if len(_banks) > _CACHED:
            _banks.clear()
        known = wavefronts(offsets, warps, lanes, width)
        _banks[key] = known
    return known


def wavefronts(addresses: Array, warps: Array, lanes: Array, width: int) -> tuple[int, int]:
    """Passes and fewest passes, summed over warps.

    All of the rule stands here: a warp's request of up to 4 bytes a thread is served together, of 8 bytes by
    half-warps, of 16 bytes by quarter-warps; a pass gives one 4-byte word of each of 32 banks, to every lane
    that asks for it; so a group of lanes takes as many passes as its busiest bank has distinct words. The
    fewest passes are one for every 32 distinct words of a group.

    Args:
        addresses: byte address of each active thread, one-dimensional int64.
        warps: warp of each of them.
        lanes: lane within its warp.
        width: bytes each thread asks for: 1, 2, 4, 8 or 16.
    """
    if not len(addresses):
        return 0, 0
    words = max(1, width // BANK_BYTES)
    group = warps * words + lanes * words // WARP  # halves and quarters of a warp are served one by one
    word = (addresses // BANK_BYTES)[:, None] + np.arange(words)[None]
    keys = np.unique((group[:, None] << 40) | word)  # a word asked for twice is served once
    groups, banks = keys >> 40, keys & (BANKS - 1)
    slot = (groups - groups[0]) * BANKS + banks
    counts = np.bincount(slot, minlength=(int(groups[-1] - groups[0]) + 1) * BANKS).reshape(-1, BANKS)
    per_group = counts.max(axis=1)
    distinct = counts.sum(axis=1)
    ideal = -(-distinct // BANKS)
    return int(per_group.sum()), int(ideal.sum())
