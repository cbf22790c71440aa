"""Totals of a candidate's counts, each with its value for a base revision and the change between them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from cutegen_nb.analysis.figures.quantity import change, count, scaled, share, times
from cutegen_nb.core.profile import Counters, Profile

_UNCHANGED = 0.005
"""Relative change below which a count is called neither better nor worse: noise of random inputs."""


@dataclass(frozen=True, slots=True)
class _Metric:
    title: str
    read: Callable[[Counters], float]
    write: Callable[[float], str]
    counter: str = ""
    more_is_better: bool = False
    is_judged: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CountChange:
    """One figure of a candidate beside that of a base revision."""

    title: str
    """Name of the figure."""
    before: str
    """Figure of the base revision as text; empty where there is none to compare with."""
    after: str
    """Figure of the candidate as text."""
    change: str = ""
    """Relative change with its sign; empty without a base."""
    kind: str = "neutral"
    """``good`` if it changed for the better, ``bad`` if for the worse, ``neutral`` for neither."""
    ratio: float = 1.0
    """Larger value ÷ smaller one, so that gains and losses compare; infinite from 0 and to 0."""
    counter: str = ""
    """Name by which a strategy or a prediction refers to the figure; empty where it has none."""

    @property
    def moved(self) -> str:
        """Change in words: ``−87.5 % better``; the bare change where it is for neither."""
        word = {"good": " better", "bad": " worse"}.get(self.kind, "")
        return f"{self.change}{word}"


def _ratio(value: float, by: float) -> float:
    return value / by if by else math.nan  # a kernel without shared memory has no wavefronts to divide by


_METRICS: tuple[_Metric, ...] = (
    _Metric("Global sectors (32 B)", lambda c: c.gmem_sectors, count, "gmem_sectors"),
    _Metric("Global sectors of loads", lambda c: c.gmem_load_sectors, count, "gmem_load_sectors"),
    _Metric("Global sectors of stores", lambda c: c.gmem_store_sectors, count, "gmem_store_sectors"),
    _Metric("Global sectors of atomics", lambda c: c.gmem_atomic_sectors, count, "gmem_atomic_sectors"),
    _Metric("Sectors ÷ ideal", lambda c: _ratio(c.gmem_sectors, c.gmem_ideal_sectors), times),
    _Metric("Global bytes requested", lambda c: c.gmem_bytes, lambda value: scaled(value, "B"), "gmem_bytes"),
    _Metric("Global requests", lambda c: c.gmem_requests, count, "gmem_requests"),
    _Metric("Shared wavefronts", lambda c: c.smem_wavefronts, count, "smem_wavefronts"),
    _Metric("Wavefronts ÷ ideal", lambda c: _ratio(c.smem_wavefronts, c.smem_ideal_wavefronts), times),
    _Metric("Warp instructions", lambda c: c.warp_instructions, count, "warp_instructions"),
    _Metric(
        "Lanes active",
        lambda c: _ratio(c.thread_instructions, 32 * c.warp_instructions),
        share,
        more_is_better=True,
    ),
    _Metric("Barriers", lambda c: c.barriers, count, "barriers"),
    _Metric("Branches", lambda c: c.branches, count, "branches"),
    _Metric("Divergent branches", lambda c: c.divergent_branches, count, "divergent_branches"),
)


def is_comparable(profile: Profile, base: Profile | None) -> bool:
    """Return whether two profiles have one source: simulated and measured counts are not of one size."""
    return base is not None and base.source is profile.source


def count_changes(profile: Profile, base: Profile | None) -> tuple[CountChange, ...]:
    """Return every total that is not 0; with a comparable base those that changed most come first."""
    is_compared = base is not None and is_comparable(profile, base)
    return counter_changes(profile.counters, base.counters if base is not None and is_compared else None)


def counter_changes(after: Counters, before: Counters | None) -> tuple[CountChange, ...]:
    """Return every total that is not 0; with counts of a base those whose ratio is largest come first."""
    found = []
    for metric in (*_METRICS, *_flops(after, before)):
        new = metric.read(after)
        old = metric.read(before) if before else 0.0
        if math.isnan(new) or not (new or old):
            continue
        if before is None:
            found.append(_alone(metric, new))
        elif math.isnan(old):
            found.append(replace(_alone(metric, new), before="–"))
        else:
            found.append(_changed(metric, old, new))
    return tuple(sorted(found, key=lambda one: -one.ratio))  # stable: what is unchanged keeps its order


def _alone(metric: _Metric, value: float) -> CountChange:
    return CountChange(title=metric.title, before="", after=metric.write(value), counter=metric.counter)


def _changed(metric: _Metric, old: float, new: float) -> CountChange:
    moved = abs(new - old) / old if old else math.inf if new else 0.0
    is_better = (new > old) is metric.more_is_better
    return CountChange(
        title=metric.title,
        before=metric.write(old),
        after=metric.write(new),
        change=change(old, new),
        kind="neutral" if moved < _UNCHANGED or not metric.is_judged else "good" if is_better else "bad",
        ratio=_ratio_of(old, new),
        counter=metric.counter,
    )


def _ratio_of(old: float, new: float) -> float:
    small, large = sorted((old, new))
    return large / small if small else math.inf if large else 1.0


def _flops(after: Counters, before: Counters | None) -> list[_Metric]:
    of_both = [{kind for kind, flops in item.flops.items() if flops} for item in (after, before or after)]
    # Work that moves to another pipe, as from CUDA cores to tensor cores, is neither better nor worse.
    is_moved = of_both[0] != of_both[1]
    return [
        _Metric(f"FLOPs, {kind}", partial(_flops_of, kind), count, is_judged=not is_moved)
        for kind in sorted(of_both[0] | of_both[1])
    ]


def _flops_of(kind: str, item: Counters) -> float:
    return item.flops.get(kind, 0)
