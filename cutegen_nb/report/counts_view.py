"""Counts of a candidate: against its parent, by launch, and beside each line of its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from cutegen_nb.analysis.count_tables import (
    CountTable,
    detail_tables,
    hottest_lines,
    kernel_name,
    resources,
)
from cutegen_nb.analysis.lines import by_line
from cutegen_nb.analysis.quantity import change, count, scaled, share, times
from cutegen_nb.core.profile import Counters, LaunchProfile, Profile, ProfileSource
from cutegen_nb.report.code import highlight, line_html
from cutegen_nb.report.markup import Style, gap, look, safe, table

_AROUND = 2
"""Lines shown before and after one that has counts."""
_HEAT = "0,114,178"
"""The blue of added lines; the figure is always written as well."""
_CODE = frozenset({"Kernel", "Pipe", "Pipe and type", "Source"})
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
    source: str,
    *,
    parent: Profile | None = None,
    names: tuple[str, str] = ("parent", "this"),
    style: Style = Style.RECORD,
) -> str:
    """Totals against the parent, launches, and the source with its counts. `names` are the revisions'."""
    return (
        _note(profile, style)
        + totals(profile, parent, names, style)
        + details(profile, style)
        + launches(profile, style)
        + plain_table(resources(profile), style)
        + plain_table(hottest_lines(profile, source), style)
        + lines(profile, source, style)
    )


def details(profile: Profile, style: Style) -> str:
    """Instructions by pipe, arithmetic, and both memories by kind of access."""
    return "".join(plain_table(item, style) for item in detail_tables(profile))


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


def lines(profile: Profile, source: str, style: Style) -> str:
    """The source with counts beside each line that has any; stretches without are folded."""
    by_number = by_line(profile)
    if not by_number.known:
        return f"<p{look(style, 'muted')}>The counts carry no lines of this source.</p>"
    own = {number: item for number, item in by_number.own.items() if number <= len(highlight(source))}
    columns = _line_columns(own)
    near = {line for number in own for line in range(number - _AROUND, number + _AROUND + 1)}
    parts: list[str] = []
    for is_near, group in groupby(range(1, len(highlight(source)) + 1), key=near.__contains__):
        numbers = list(group)
        body = _line_table(numbers, source, own, columns, style, heading=is_near and not _headed(parts))
        title = f"{len(numbers)} {'line' if len(numbers) == 1 else 'lines'} without counts"
        parts.append(body if is_near else gap(style, title, body))
    rest = _elsewhere(by_number.elsewhere, style)
    return f"<div{look(style, 'card')}>{''.join(parts)}</div>{rest}"


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


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    read: Callable[[Counters], int]
    largest: int


def _line_columns(own: Mapping[int, Counters]) -> tuple[_Column, ...]:
    readers: tuple[tuple[str, Callable[[Counters], int]], ...] = (
        ("Sectors", lambda c: c.gmem_sectors),
        ("Wavefronts", lambda c: c.smem_wavefronts),
        ("Warp instr.", lambda c: c.warp_instructions),
    )
    largest = [max((read(item) for item in own.values()), default=0) for _, read in readers]
    return tuple(
        _Column(title, read, top) for (title, read), top in zip(readers, largest, strict=True) if top
    )


def _headed(parts: list[str]) -> bool:
    return any("<thead>" in part for part in parts)


def _line_table(  # noqa: PLR0913 - one table's whole description, named at its only call
    numbers: list[int],
    source: str,
    own: Mapping[int, Counters],
    columns: tuple[_Column, ...],
    style: Style,
    *,
    heading: bool,
) -> str:
    rows = "".join(_line_row(number, source, own.get(number), columns, style) for number in numbers)
    head = ""
    if heading:
        titles = "".join(f'<th scope="col"{look(style, "heat")}>{safe(item.title)}</th>' for item in columns)
        head = (
            f"<caption{look(style, 'caption')}>Counts beside the source, all launches together</caption>"
            f'<thead><tr>{titles}<th scope="col"{look(style, "number")}>Line</th>'
            f'<th scope="col"{look(style, "code")}>Source</th></tr></thead>'
        )
    return f"<table{look(style, 'listing')}>{head}<tbody>{rows}</tbody></table>"


def _line_row(
    number: int, source: str, item: Counters | None, columns: tuple[_Column, ...], style: Style
) -> str:
    heat = "".join(_heat(column.read(item) if item else 0, column.largest, style) for column in columns)
    code = line_html(highlight(source)[number - 1], style)
    return (
        f"<tr{look(style, 'row')}>{heat}<td{look(style, 'number')}>{number}</td>"
        f"<td{look(style, 'code')}>{code}</td></tr>"
    )


def _heat(value: int, largest: int, style: Style) -> str:
    if not value:
        return f"<td{look(style, 'heat')}></td>"
    depth = f"background:rgba({_HEAT},{0.06 + 0.44 * value / largest:.2f})"
    if style is Style.PAGE:
        return f'<td class="heat" style="{depth}">{count(value)}</td>'
    return f'<td style="{depth};padding:0 6px;text-align:right;width:7em;border:0">{count(value)}</td>'


def _elsewhere(item: Counters, style: Style) -> str:
    if not item.warp_instructions and not item.gmem_sectors:
        return ""
    words = (
        f"Besides these: {count(item.warp_instructions)} warp instructions and {count(item.gmem_sectors)} "
        "global sectors in lines of the DSL's library or with no line."
    )
    return f"<p{look(style, 'muted')}>{words}</p>"
