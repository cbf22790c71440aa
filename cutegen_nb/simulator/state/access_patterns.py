"""Access patterns of a request: strided runs of addresses, and 32-byte sectors of global memory per request.

Sectors are counted per warp request, as Nsight Compute counts them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.core.profile import SECTOR_BYTES
from cutegen_nb.simulator.numbers.values import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Two-level strided pattern: ``outer`` equally spaced runs of ``inner`` equally spaced numbers."""

    first: int
    """First number of the first run."""
    outer: int
    """Number of runs."""
    outer_step: int
    """Distance between the first numbers of neighbouring runs."""
    inner: int
    """Numbers in a run."""
    inner_step: int
    """Distance between neighbouring numbers of a run."""


_runs: dict[bytes, Runs | None] = {}
_sectors: dict[tuple[bytes, bytes, int, int], tuple[int, int, Array]] = {}
_CACHED = 20_000
"""Entries of each cache above; a cache with more is emptied."""


def runs_of(numbers: Array) -> Runs | None:
    """Return the two-level pattern of a one-dimensional int64 array; None if it has none."""
    first = int(numbers[0])
    # The pattern does not depend on the first number, so the cache is keyed by differences from it.
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
    # The first run ends where the step changes for the first time.
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
    """Count the sectors of one CTA's request, cached.

    Args:
        offsets: byte offset of each active thread, one-dimensional int64.
        warps: warp number of each active thread, ascending.
        phase: bytes from a sector's start to the CTA's base address, 0 … 31; added to the offsets.
        width: bytes each thread asks for, a power of two up to 32.

    Returns:
        Sectors summed over warps, the fewest sectors that could carry the distinct bytes, and the distinct
        sector numbers of the CTA relative to its base address.
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
    """Count sectors and fewest possible sectors of requests, summed over warps.

    ``addresses`` (bytes, in lane order) and ``warps`` (ascending) belong to the active threads, both
    one-dimensional int64. ``width`` is the bytes each thread asks for.
    """
    if not len(addresses):
        return 0, 0
    new_warp = np.empty(len(warps), np.bool_)
    new_warp[0] = True
    np.not_equal(warps[1:], warps[:-1], out=new_warp[1:])
    step = np.diff(addresses)
    if not np.all((step >= 0) | new_warp[1:]):
        # Sort key: warp in the high bits, address in the low bits, so one sort orders each warp's addresses.
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
    # Fewest sectors of a warp: ceil(distinct addresses × width / 32).
    distinct = np.add.reduceat(new_address, np.flatnonzero(new_warp), dtype=np.int64)
    ideal = -(-distinct * width // SECTOR_BYTES)
    return int(np.count_nonzero(new_sector)), int(ideal.sum())
