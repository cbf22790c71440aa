"""How the addresses of one request to global memory lie: strided runs, and 32-byte sectors a request.

Sectors follow the memory hierarchy that Nsight Compute counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.core.profile import SECTOR_BYTES
from cutegen_nb.simulator.values import Array


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
