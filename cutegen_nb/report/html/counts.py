"""HTML tables of a candidate's counts: compared with the parent, by launch, by kind, and compiled code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from cutegen_nb.analysis.figures.quantity import change, count, scaled, share, times
from cutegen_nb.analysis.tables.compiled_code import compiled as instruction_tables
from cutegen_nb.analysis.tables.counts import CountTable, detail_tables, kernel_name, resources
from cutegen_nb.analysis.tables.measured import measured_tables
from cutegen_nb.core.profile import Counters, Profile
from cutegen_nb.report.markup import Style, fill, look

_CODE = frozenset({"Kernel", "Pipe", "Pipe and type", "Which"})
"""Columns whose cells are names or code."""
_UNCHANGED = 0.005
"""Relative change below which a count is called neither better nor worse: noise of random inputs."""


@dataclass(frozen=True, slots=True)
class _Metric:
    title: str
    read: Callable[[Counters], float]
    write: Callable[[float], str]
    more_is_better: bool = False


def _ratio(value: float, by: float) -> float:
    return value / by if by else 0.0


_METRICS: tuple[_Metric, ...] = (
    _Metric("Global sectors (32 B)", lambda c: c.gmem_sectors, count),
    _Metric("Global sectors of loads", lambda c: c.gmem_load_sectors, count),
    _Metric("Global sectors of stores", lambda c: c.gmem_store_sectors, count),
    _Metric("Global sectors of atomics", lambda c: c.gmem_atomic_sectors, count),
    _Metric("Sectors ÷ ideal", lambda c: _ratio(c.gmem_sectors, c.gmem_ideal_sectors), times),
    _Metric("Global bytes requested", lambda c: c.gmem_bytes, lambda value: scaled(value, "B")),
    _Metric("Global requests", lambda c: c.gmem_requests, count),
    _Metric("Shared wavefronts", lambda c: c.smem_wavefronts, count),
    _Metric("Wavefronts ÷ ideal", lambda c: _ratio(c.smem_wavefronts, c.smem_ideal_wavefronts), times),
    _Metric("Warp instructions", lambda c: c.warp_instructions, count),
    _Metric("Lanes active", lambda c: _ratio(c.thread_instructions, 32 * c.warp_instructions), share, True),
    _Metric("Barriers", lambda c: c.barriers, count),
    _Metric("Branches", lambda c: c.branches, count),
    _Metric("Divergent branches", lambda c: c.divergent_branches, count),
)


def render(
    profile: Profile,
    *,
    parent: Profile | None = None,
    names: tuple[str, str] = ("parent", "this"),
    style: Style = Style.RECORD,
) -> Markup:
    """Return totals compared with the parent, launches, and every kind of count folded away.

    `names` are those of the two revisions.
    """
    return fill(
        "counts",
        style,
        profile=profile,
        launches=list(enumerate(profile.launches, start=1)),
        totals=totals(profile, parent, names, style),
        details=details(profile, style),
        kernel_name=kernel_name,
    )


def compiled(profile: Profile, *, style: Style = Style.RECORD) -> Markup:
    """Return the resources of each kernel and, folded, its instructions; empty where nothing is known."""
    return fill(
        "compiled",
        style,
        resources=plain_table(resources(profile), style),
        instructions=plain_tables(instruction_tables(profile), style),
    )


def details(profile: Profile, style: Style) -> Markup:
    """Return hardware measurements, then instructions by pipe, arithmetic, and memory accesses by kind."""
    return plain_tables((*measured_tables(profile), *detail_tables(profile)), style)


def plain_tables(items: Iterable[CountTable], style: Style) -> Markup:
    """Return tables of text cells as HTML, one below the other."""
    return Markup().join(plain_table(item, style) for item in items)


def plain_table(item: CountTable, style: Style) -> Markup:
    """Return a table of text cells as HTML with its note; empty if it has no rows."""
    return fill("plain_table", style, item=item, code=_CODE) if item.rows else Markup()


def totals(profile: Profile, parent: Profile | None, names: tuple[str, str], style: Style) -> Markup:
    """Return every metric that is not 0; with a comparable baseline those that changed most come first.

    `parent` is the profile of the baseline.
    """
    after = profile.counters
    before = parent.counters if parent and parent.source is profile.source else None
    rows: list[tuple[float, tuple[str, ...]]] = []
    for metric in (*_METRICS, *_flops(after, before)):
        new = metric.read(after)
        old = metric.read(before) if before else 0.0
        if not new and not old:
            continue
        figures = [metric.write(old), metric.write(new), _moved(metric, old, new, style)]
        shown = figures if before else figures[1:2]
        rows.append((_size(old, new) if before else 0.0, (metric.title, *shown)))
    rows.sort(key=lambda row: -row[0])  # stable: what is unchanged keeps its order
    headings = (*names, "Change, most first") if before else names[1:]
    columns = (("Count", False), *((name, True) for name in headings))
    title = f"Totals of one call ({profile.source.value})"
    return plain_table(
        CountTable(title=title, columns=columns, rows=tuple(cells for _, cells in rows)), style
    )


def _size(old: float, new: float) -> float:
    """Return the relative change without its sign; infinite from 0."""
    return abs(new - old) / old if old else math.inf if new else 0.0


def _moved(metric: _Metric, old: float, new: float, style: Style) -> str:
    """Return a change with its sign, and in words and colour if it is for better or worse."""
    told = change(old, new)
    if _size(old, new) < _UNCHANGED:
        return told
    is_better = (new > old) is metric.more_is_better
    kind, word = ("good", "better") if is_better else ("bad", "worse")
    looks = Markup(' class="badge {}"').format(kind) if style is Style.PAGE else look(style, kind)
    return Markup("<span{}>{} {}</span>").format(looks, told, word)


def _flops(after: Counters, before: Counters | None) -> list[_Metric]:
    kinds = sorted(after.flops.keys() | (before.flops.keys() if before else set()))
    return [_Metric(f"FLOPs, {kind}", partial(_flops_of, kind), count) for kind in kinds]


def _flops_of(kind: str, item: Counters) -> float:
    return item.flops.get(kind, 0)
