"""Reuse of sectors by one CTA, and overlap of neighbouring CTAs, from logs of accesses.

Distances are stack distances: distinct sectors touched in between. They are computed from reuse times by
StatStack (Eklov and Hagersten, "StatStack: Efficient Modeling of LRU Caches", ISPASS 2010).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.core.estimate import Sharing
from cutegen_nb.core.profile import SECTOR_BYTES
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.sampling.access_log import CtaLog
from cutegen_nb.simulator.sampling.sweeps import sweeps_of


@dataclass(slots=True)
class CtaReuse:
    """Sectors that one CTA loads for the first time, and again."""

    first: float
    """Sectors loaded for the first time."""
    total: float
    """Sectors loaded, counted once a warp request."""
    again: dict[int, float]
    """Sectors loaded again, by distance in bytes, a power of two."""
    fresh: Array
    """Sectors touched for the first time, by a load or a store."""
    fresh_weights: Array
    """Number of sectors that each of them stands for."""
    fresh_loads: Array
    """True for those that a load touched first."""


def reuse_of(log: CtaLog) -> CtaReuse:
    """Compute the reuse of one CTA."""
    if not log.sectors:
        nothing = np.zeros(0, np.int64)
        return CtaReuse(0.0, 0.0, {}, nothing, nothing.astype(np.float64), nothing.astype(np.bool_))
    lengths = np.array([len(one) for one in log.sectors])
    sectors = np.concatenate(log.sectors)
    access = np.repeat(np.arange(len(lengths)), lengths)
    weights, stores = np.array(log.weights)[access], np.array(log.stores)[access]
    within = np.arange(len(sectors)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    times = np.array(log.times)[access] + np.where(stores, 0, within)
    before = _touched_before(sectors, times)
    cold = np.flatnonzero(np.isnan(before))
    before[cold] = _swept_before(log, sectors[cold], access[cold])
    fresh = np.isnan(before)
    loads = ~stores
    known = loads & ~fresh
    distances = np.maximum(times - before, 1.0)[known]
    first = float(weights[loads & fresh].sum())
    again = _histogram(_stack_distances(distances, weights[known], first), weights[known])
    for at, (repeated, weight) in enumerate(zip(log.again, log.weights, strict=True)):
        if repeated and not log.stores[at]:
            # Several warps of one instruction: in between lies at most what the instruction itself loads.
            distance = _power_of_two(len(log.sectors[at]) * SECTOR_BYTES)
            again[distance] = again.get(distance, 0.0) + repeated * weight
    return CtaReuse(first, first + sum(again.values()), again, sectors[fresh], weights[fresh], loads[fresh])


def _touched_before(sectors: Array, times: Array) -> Array:
    """Time at which each sector was touched before, in the order of the log; NaN for the first touch."""
    order = np.argsort(sectors, kind="stable")
    ordered = sectors[order]
    same = np.zeros(len(order), np.bool_)
    same[1:] = ordered[1:] == ordered[:-1]
    before = np.full(len(order), np.nan)
    before[order[same]] = times[order[np.flatnonzero(same) - 1]]
    return before


def _swept_before(log: CtaLog, sectors: Array, accesses: Array) -> Array:
    """Time at which skipped iterations touched each sector before its access; NaN if they did not."""
    result = np.full(len(sectors), np.nan)
    for sweep in sweeps_of(log):
        asked = np.flatnonzero((accesses >= sweep.since) & (accesses < sweep.until))
        if len(asked):
            result[asked] = np.fmax(result[asked], sweep.found(sectors[asked]))
    return result


def _stack_distances(times: Array, weights: Array, first: float) -> Array:
    """Expected distinct sectors within each reuse time.

    Of the accesses in between, one that lies t before the end is the last to its sector in there if its own
    reuse time exceeds t. So the distance of a reuse time d is the integral of P(reuse time > t) from 0 to d.
    """
    if not len(times):
        return times
    order = np.argsort(times, kind="stable")
    ordered, total = times[order], weights.sum() + first
    longer = 1.0 - np.cumsum(weights[order]) / total  # P(reuse time > t) from each time on
    steps = np.diff(ordered, prepend=0.0)
    before = np.concatenate([[1.0], longer[:-1]])
    distances = np.empty_like(times)
    distances[order] = np.cumsum(steps * before)
    return np.maximum(distances, 1.0)


def _histogram(distances: Array, weights: Array) -> dict[int, float]:
    """Weights by distance in bytes, rounded to powers of two."""
    if not len(distances):
        return {}
    exponents = np.rint(np.log2(distances * SECTOR_BYTES)).astype(np.int64)
    found, where = np.unique(exponents, return_inverse=True)
    sums = np.bincount(where, weights=weights)
    return {1 << int(one): float(total) for one, total in zip(found, sums, strict=True)}


def _power_of_two(number: int) -> int:
    return 1 << round(float(np.log2(number)))


# -- neighbours ----------------------------------------------------------------------------------------------
def sharing_of(own: CtaReuse, near: dict[str, CtaLog]) -> Sharing:
    """Share of the first loads of a CTA that its neighbours load too, by axis."""
    sectors, weights = own.fresh[own.fresh_loads], own.fresh_weights[own.fresh_loads]
    total = float(weights.sum())
    if not total:
        return Sharing()
    shared = {axis: _loads(log, sectors) for axis, log in near.items()}
    count = np.sum([*shared.values(), np.zeros(len(sectors), np.int64)], axis=0)
    only = {axis: float(weights[truth & (count == 1)].sum()) / total for axis, truth in shared.items()}
    return Sharing(**only, all=float(weights[count > 1].sum()) / total)


def _loads(log: CtaLog, sectors: Array) -> Array:
    """Return whether a CTA loads each sector, skipped iterations included."""
    loaded = [one for one, stores in zip(log.sectors, log.stores, strict=True) if not stores]
    if not loaded or not len(sectors):
        return np.zeros(len(sectors), np.bool_)
    found = np.isin(sectors, np.concatenate(loaded))
    for sweep in sweeps_of(log, loads_only=True):
        missing = np.flatnonzero(~found)
        if len(missing):
            found[missing] = ~np.isnan(sweep.found(sectors[missing]))
    return found
