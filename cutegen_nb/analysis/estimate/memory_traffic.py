"""Sectors of a launch by the memory that serves them: L1, L2 or DRAM."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cutegen_nb.analysis.estimate.constants import EstimateConstants
from cutegen_nb.analysis.estimate.residency import Residency
from cutegen_nb.analysis.estimate.targets import EstimateTarget
from cutegen_nb.analysis.hardware.occupancy import WARP_THREADS
from cutegen_nb.core.estimate import LaunchSample, Sharing
from cutegen_nb.core.profile import SECTOR_BYTES, Counters

_LINE_SECTORS = 4
"""Sectors of a cache line of 128 bytes."""
_WORD_BYTES = 4
"""Bytes of a word, the least part of a sector that usual kernels store."""
_LEAST_LOADED = 1e-4
"""Share of distinct sectors that must be loaded for their number to tell anything."""
_LOADS, _STORES = ("load", "async-copy"), ("store", "atomic", "reduction")
"""Kinds of access, as `Counters.gmem_accesses` names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTraffic:
    """Sectors of one launch by the level that serves them."""

    l1: float
    """Loaded sectors found in the L1."""
    l2: float
    """Loaded sectors found in the L2."""
    dram: float
    """Sectors read from DRAM."""
    dram_again: float
    """Part of `dram` that had been read before and was evicted: fetched alone, not as part of a stream."""
    stores: float
    """Sectors that stores and atomics send to the L2."""
    dram_stores: float
    """Sectors written to DRAM, partial ones joined in the L2."""
    load_scatter: float
    """Lines that loads touch: 0 for whole lines, 1 for a line of its own for every thread."""
    store_scatter: float
    """The same of stores and atomics."""
    partial_stores: float
    """Sectors of `stores` that the L2 has to join with others, as each request fills a part of them."""

    @property
    def loads(self) -> float:
        """Sectors that loads asked for."""
        return self.l1 + self.l2 + self.dram


def memory_traffic(
    sample: LaunchSample,
    placed: Residency,
    target: EstimateTarget,
    constants: EstimateConstants,
    *,
    is_first: bool,
) -> MemoryTraffic:
    """Split the sectors of a launch by level.

    A load of a sector that its CTA touched before hits the L1, or the L2, where fewer bytes came in between
    than the CTA's share of that cache. A first touch reads DRAM unless another resident CTA did. With
    `is_first` off, a launch whose data fits the L2 finds it there, left by the launch before.
    """
    counters = sample.profile.counters
    written = counters.gmem_store_sectors + counters.gmem_atomic_sectors
    load_scatter = _scatter(sample.scattered_load_sectors, counters.gmem_load_sectors, counters, _LOADS)
    store_scatter = _scatter(sample.scattered_store_sectors, written, counters, _STORES)
    l2_bytes = target.l2_bytes * constants.l2_share
    first = sample.first_touch_sectors or counters.gmem_load_sectors
    fresh = _fresh_fraction(sample, placed)
    # A lone sector takes the place of its whole line.
    spread = 1 + (_LINE_SECTORS - 1) * load_scatter
    l1_share = placed.l1_bytes / placed.resident_per_sm
    l2_share = l2_bytes / (placed.resident * fresh)
    l1 = _within(sample, l1_share / spread)
    cached = max(_within(sample, l2_share / spread), l1)
    again = _within(sample, math.inf) - cached
    new = _bounded(first * fresh, sample, l2_bytes)
    l2 = cached - l1 + first - new
    dram_stores = _written(counters)
    if not is_first and (new + dram_stores) * SECTOR_BYTES <= l2_bytes:
        l2, new = l2 + new, 0.0
    return MemoryTraffic(
        l1=l1, l2=l2, dram=new + again, dram_again=again,
        stores=written, dram_stores=dram_stores,
        load_scatter=load_scatter, store_scatter=store_scatter,
        partial_stores=_partial(counters) + counters.gmem_atomic_sectors * store_scatter,
    )  # fmt: skip


def _bounded(new: float, sample: LaunchSample, l2_bytes: float) -> float:
    """Return the first touches that read DRAM, within what the number of distinct sectors allows."""
    loaded = min(_loaded(sample), sample.first_touch_sectors)
    if not loaded:
        return new
    # Whatever is loaded at all crosses DRAM once, and only once where all of it stays in the L2.
    return loaded if loaded * SECTOR_BYTES <= l2_bytes else max(new, loaded)


def _written(counters: Counters) -> float:
    """Return the sectors that stores fill, with parts of a sector joined."""
    return min(counters.gmem_store_bytes / SECTOR_BYTES, counters.gmem_store_sectors)


def _partial(counters: Counters) -> float:
    """Return the stored sectors that count as partial: all where a store fills a word of each."""
    unfilled = counters.gmem_store_sectors - _written(counters)
    return min(unfilled / (1 - _WORD_BYTES / SECTOR_BYTES), counters.gmem_store_sectors)


def _within(sample: LaunchSample, distance_bytes: float) -> float:
    """Return the sectors loaded again with at most this many bytes in between."""
    return float(sum(one.sectors for one in sample.reuses if one.distance_bytes <= distance_bytes))


def _scatter(scattered: int | None, total: int, counters: Counters, kinds: tuple[str, ...]) -> float:
    """Return 0 for requests whose threads share sectors, 1 for those where each thread has one of its own.

    Without a count by instruction, the mean request of these kinds of access stands for all.
    """
    if scattered is not None:
        return scattered / total if total else 0.0
    accesses = [counters.gmem_accesses[kind] for kind in kinds if kind in counters.gmem_accesses]
    sectors = sum(one.passes for one in accesses)
    if not sectors:
        return 0.0
    # Threads that share a sector are neighbours in memory, so that their sectors share lines as well.
    threads_per_sector = WARP_THREADS * sum(one.requests for one in accesses) / sectors
    return min(max(2 - threads_per_sector, 0.0), 1.0)


def _fresh_fraction(sample: LaunchSample, placed: Residency) -> float:
    """Return the share of first touches that no other resident CTA makes."""
    first = sample.first_touch_sectors
    if not first:
        return 1.0
    # CTAs start in order of their number, x fastest, so resident ones form a box of the grid.
    gx, gy, _ = sample.profile.grid
    across = min(gx, placed.resident)
    rows = min(gy, max(placed.resident // gx, 1))
    layers = max(placed.resident // (gx * gy), 1)
    # CTAs that take a part of a sector each are near one another: the L2 joins their loads.
    loaded = sample.profile.counters.gmem_load_bytes / SECTOR_BYTES
    filled = min(loaded / first, 1.0)
    # Loads that many CTAs make, but no neighbour, are spread evenly over the grid.
    loaded_once = _loaded(sample)
    loads_each = first * filled / loaded_once if loaded_once else 0.0
    often = loads_each * placed.resident / placed.ctas
    shared = _possible(sample.sharing, loads_each)
    alone = max(1 - shared.x - shared.y - shared.z - shared.all, 0.0)
    fresh = (
        alone / max(often, 1.0)
        + shared.x / across
        + shared.y / rows
        + shared.z / layers
        + shared.all / placed.resident
    )
    return min(fresh * max(filled, 1 / 8), 1.0)


def _loaded(sample: LaunchSample) -> float:
    """Return the distinct sectors that loads touch; 0 where they were not counted."""
    distinct = sample.profile.gmem_distinct_sectors
    # Sectors that are only written are no load's.
    loaded = distinct - _written(sample.profile.counters)
    # Of a kernel that updates in place, the same sectors are read and written, so that nothing is left.
    return loaded if loaded > _LEAST_LOADED * distinct else 0.0


def _possible(sharing: Sharing, loads_each: float) -> Sharing:
    """Return the sharing of neighbours, reduced to what the number of distinct sectors allows.

    A share s of first touches that two CTAs or more make leaves at most 1 − s ÷ 2 of them distinct.
    """
    told = sharing.x + sharing.y + sharing.z + sharing.all
    most = 2 * max(1 - 1 / loads_each, 0.0) if loads_each else 1.0
    if told <= most:
        return sharing
    part = most / told
    return Sharing(x=sharing.x * part, y=sharing.y * part, z=sharing.z * part, all=sharing.all * part)
