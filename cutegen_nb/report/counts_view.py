"""Counts of a candidate: against its parent, by launch, and by kind; and what it was compiled to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from cutegen_nb.analysis.count_tables import CountTable, detail_tables, kernel_name, resources
from cutegen_nb.analysis.measured_tables import measured_tables
from cutegen_nb.analysis.quantity import change, count, scaled, share, times
from cutegen_nb.analysis.static_tables import compiled as instruction_tables
from cutegen_nb.core.profile import Counters, LaunchProfile, Profile, ProfileSource
from cutegen_nb.report.markup import Style, folded, look, safe, table

_CODE = frozenset({"Kernel", "Pipe", "Pipe and type", "Which"})
"""Columns whose cells are names or source."""


@dataclass(frozen=True, slots=True)
class _Metric:
    title: str
    read: Callable[[Counters], float]
    write: Callable[[float], str]


def _ratio(value: float, by: float) -> float:
    return value / by if by else 0.0


_METRICS: tuple[_Metric, ...] = (
    _Metric("Global sectors (32 B)", lambda c: c.gmem_sectors, count),
    _Metric("· loads", lambda c: c.gmem_load_sectors, count),
    _Metric("· stores", lambda c: c.gmem_store_sectors, count),
    _Metric("· atomics", lambda c: c.gmem_atomic_sectors, count),
    _Metric("Sectors ÷ ideal", lambda c: _ratio(c.gmem_sectors, c.gmem_ideal_sectors), times),
    _Metric("Global bytes requested", lambda c: c.gmem_bytes, lambda value: scaled(value, "B")),
    _Metric("Global requests", lambda c: c.gmem_requests, count),
    _Metric("Shared wavefronts", lambda c: c.smem_wavefronts, count),
    _Metric("Wavefronts ÷ ideal", lambda c: _ratio(c.smem_wavefronts, c.smem_ideal_wavefronts), times),
    _Metric("Warp instructions", lambda c: c.warp_instructions, count),
    _Metric("Lanes active", lambda c: _ratio(c.thread_instructions, 32 * c.warp_instructions), share),
    _Metric("Barriers", lambda c: c.barriers, count),
    _Metric("Branches", lambda c: c.branches, count),
    _Metric("· divergent", lambda c: c.divergent_branches, count),
)


def render(
    profile: Profile,
    *,
    parent: Profile | None = None,
    names: tuple[str, str] = ("parent", "this"),
    style: Style = Style.RECORD,
) -> str:
    """Totals against the parent, launches, and on demand every kind of count. `names` are the revisions'."""
    kinds = folded(style, "By pipe, by type and by kind of access", details(profile, style))
    return _note(profile, style) + totals(profile, parent, names, style) + launches(profile, style) + kinds


def compiled(profile: Profile, *, style: Style = Style.RECORD) -> str:
    """What the compiler gave each kernel, and on demand its instructions; empty where nothing is known."""
    tables = "".join(plain_table(item, style) for item in instruction_tables(profile))
    listed = folded(style, "Instructions of the compiled code, by kind", tables) if tables else ""
    return plain_table(resources(profile), style) + listed


def details(profile: Profile, style: Style) -> str:
    """Instructions by pipe, arithmetic, and both memories by kind of access; first what hardware did."""
    tables = (*measured_tables(profile), *detail_tables(profile))
    return "".join(plain_table(item, style) for item in tables)


def plain_table(item: CountTable, style: Style) -> str:
    """A table of words as HTML, its note below; empty where it has no rows."""
    if not item.rows:
        return ""
    code = [title in _CODE for title, _ in item.columns]
    body = tuple(
        tuple(_cell(cell, is_code=is_code) for cell, is_code in zip(row, code, strict=True))
        for row in item.rows
    )
    note = f"<p{look(style, 'muted')}>{safe(item.note)}</p>" if item.note else ""
    return f"{table(style, item.title, item.columns, body)}{note}"


def _cell(text: str, *, is_code: bool) -> str:
    return f"<code>{safe(text)}</code>" if is_code else safe(text)


def totals(profile: Profile, parent: Profile | None, names: tuple[str, str], style: Style) -> str:
    """Every metric that is not nought, with its change when there is a comparable parent."""
    after = profile.counters
    before = parent.counters if parent and parent.source is profile.source else None
    metrics = [*_METRICS, *_flops(after, before)]
    body = []
    for metric in metrics:
        new = metric.read(after)
        old = metric.read(before) if before else 0.0
        if not new and not old:
            continue
        cells = [safe(metric.title), metric.write(new)]
        if before:
            cells[1:1] = [metric.write(old)]
            cells.append(safe(change(old, new)))
        body.append(tuple(cells))
    columns: tuple[tuple[str, bool], ...] = (("Count", False), (names[1], True))
    if before:
        columns = (("Count", False), (names[0], True), (names[1], True), ("Change", True))
    return table(style, f"Totals of one call ({profile.source.value})", columns, tuple(body))


def launches(profile: Profile, style: Style) -> str:
    """One row a kernel launch."""
    columns = (
        ("Launch", True),
        ("Kernel", False),
        ("Grid", False),
        ("Block", False),
        ("Shared memory", True),
        ("Sectors", True),
        ("Distinct", True),
        ("Warp instr.", True),
    )
    body = tuple(_launch(number, item, style) for number, item in enumerate(profile.launches, start=1))
    return table(style, f"Kernel launches ({profile.source.value})", columns, body)


def _note(profile: Profile, style: Style) -> str:
    if profile.source is not ProfileSource.SIMULATED:
        return ""
    words = (
        "Simulated counts, exact for the PTX that was compiled; not a time and no prediction of one. "
        "Sectors are counted once a warp request; no cache is modelled."
    )
    return f"<p{look(style, 'muted')}>{words}</p>"


def _flops(after: Counters, before: Counters | None) -> list[_Metric]:
    kinds = sorted(after.flops.keys() | (before.flops.keys() if before else set()))
    return [_Metric(f"FLOPs, {kind}", partial(_flops_of, kind), count) for kind in kinds]


def _flops_of(kind: str, item: Counters) -> float:
    return item.flops.get(kind, 0)


def _launch(number: int, item: LaunchProfile, style: Style) -> tuple[str, ...]:
    shared = item.dynamic_smem_bytes + item.static_smem_bytes
    return (
        str(number),
        f"<code>{safe(kernel_name(item))}</code>",
        _extent(item.grid, style),
        _extent(item.block, style),
        scaled(shared, "B"),
        count(item.counters.gmem_sectors),
        count(item.gmem_distinct_sectors) if item.gmem_distinct_sectors else "–",
        count(item.counters.warp_instructions),
    )


def _extent(size: tuple[int, int, int], style: Style) -> str:
    words = " × ".join(f"{extent:,}" for extent in size)
    return f"<span{look(style, 'name')}>{words}</span>"
