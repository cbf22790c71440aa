"""Sectors that skipped iterations touched: those of logged accesses, moved by whole strides."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.sampling.access_log import CtaLog, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Accesses of one instruction that repeat at one stride for each loop around it."""

    sectors: Array
    """Sectors of the logged accesses."""
    times: Array
    """Time of each logged access."""
    levels: tuple[Level, ...]
    """Repetitions, from inner to outer loops; strides of 0 left out."""
    since: int
    """Accesses logged when the repetitions had happened."""
    until: float
    """Accesses logged when a further loop was skipped; that loop's sweep then replaces this one. Infinity
    if no further loop was skipped."""

    def found(self, sectors: Array) -> Array:
        """Return the time at which each sector was last touched in skipped iterations; NaN if it was not."""
        if len(self.levels) == 1:
            return self._in_rows(sectors, self.levels[0])
        return self._in_box(sectors)

    def _in_rows(self, sectors: Array, level: Level) -> Array:
        """Look sectors up as base + j × stride, with the base that is nearest in the stride's direction."""
        stride, sign = abs(level.stride), 1 if level.stride > 0 else -1
        base, asked = self.sectors * sign, sectors * sign
        # Sorted by residue and then by sector, the predecessor of a sector is the base it can come from.
        order = np.lexsort((base, base % stride))
        low = min(int(base.min()), int(asked.min()))
        span = max(int(base.max()), int(asked.max())) - low + 1
        keys = (base % stride * span + (base - low))[order]
        at = np.searchsorted(keys, asked % stride * span + (asked - low), side="right") - 1
        nearest = order[np.maximum(at, 0)]
        turns = (asked - base[nearest]) // stride
        known = (at >= 0) & (asked % stride == base[nearest] % stride) & (turns <= level.repetitions)
        return np.where(known, self.times[nearest] + turns * level.time_each, np.nan)

    def _in_box(self, sectors: Array) -> Array:
        """Look sectors up in the box of several levels: a sector counts if its residue by all strides does.

        The time is interpolated between the first and the last touch of the box.
        """
        reach = [one.stride * one.repetitions for one in self.levels]
        low = int(self.sectors.min()) + sum(min(0, one) for one in reach)
        high = int(self.sectors.max()) + sum(max(0, one) for one in reach)
        common = math.gcd(*(one.stride for one in self.levels))
        known = (sectors >= low) & (sectors <= high)
        known &= np.isin(sectors % common, np.unique(self.sectors % common))
        elapsed = sum(one.repetitions * one.time_each for one in self.levels)
        share = (sectors - low) / max(1, high - low)
        return np.where(known, self.times.min() + share * elapsed, np.nan)


def sweeps_of(log: CtaLog, *, loads_only: bool = False) -> list[Sweep]:
    """Sweeps of a log, the accesses of one instruction and equal levels together."""
    together: dict[tuple[int, int, tuple[Level, ...], int, float], list[int]] = defaultdict(list)
    for at, levels in log.levels.items():
        if loads_only and log.stores[at]:
            continue
        for depth, since, until in _spans(levels):
            moving = tuple(one for one in levels[:depth] if one.stride)
            if moving:
                together[log.instructions[at], depth, moving, since, until].append(at)
    return [
        Sweep(
            sectors=np.concatenate([log.sectors[at] for at in accesses]),
            times=np.concatenate([np.full(len(log.sectors[at]), log.times[at]) for at in accesses]),
            levels=moving, since=since, until=until,
        )
        for (_, _, moving, since, until), accesses in together.items()
    ]  # fmt: skip


def _spans(levels: tuple[Level, ...]) -> Iterator[tuple[int, int, float]]:
    """Number of levels, and the range of accesses for which just these have happened."""
    for depth, one in enumerate(levels, 1):
        yield depth, one.since, levels[depth].since if depth < len(levels) else math.inf
