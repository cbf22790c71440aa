"""HTML tables of a candidate's counts: compared with the parent, by launch, by kind, and compiled code."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from cutegen_nb.analysis.tables.compiled_code import compiled as instruction_tables
from cutegen_nb.analysis.tables.count_changes import CountChange, count_changes, is_comparable
from cutegen_nb.analysis.tables.counts import CountTable, detail_tables, kernel_name, resources
from cutegen_nb.analysis.tables.measured import measured_tables
from cutegen_nb.core.profile import Profile
from cutegen_nb.report.markup import Style, fill, look

_CODE = frozenset({"Kernel", "Pipe", "Pipe and type", "Which"})
"""Columns whose cells are names or code."""


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
    is_compared = is_comparable(profile, parent)
    headings = (*names, "Change, most first") if is_compared else names[1:]
    rows = tuple(_cells(one, style, is_compared=is_compared) for one in count_changes(profile, parent))
    return plain_table(
        CountTable(
            title=f"Totals of one call ({profile.source.value})",
            columns=(("Count", False), *((name, True) for name in headings)),
            rows=rows,
        ),
        style,
    )


def _cells(one: CountChange, style: Style, *, is_compared: bool) -> tuple[str, ...]:
    """Return a row: a change for better or worse is told in words and by colour."""
    if not is_compared:
        return (one.title, one.after)
    if one.kind == "neutral":
        return (one.title, one.before, one.after, one.change)
    looks = Markup(' class="badge {}"').format(one.kind) if style is Style.PAGE else look(style, one.kind)
    return (one.title, one.before, one.after, Markup("<span{}>{}</span>").format(looks, one.moved))
