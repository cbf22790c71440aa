"""Counts of a candidate for a terminal: the twin of the counts on a page."""

from __future__ import annotations

from cutegen_nb.analysis.count_tables import CountTable, detail_tables, resources
from cutegen_nb.analysis.line_heat import hottest_lines
from cutegen_nb.analysis.measured_tables import measured_tables
from cutegen_nb.analysis.static_tables import compiled
from cutegen_nb.core.profile import Profile
from cutegen_nb.report.fitting import paragraph, table_lines
from cutegen_nb.report.markup import visible

_WIDEST = 48
"""Longer last cells are cut: a line of source, a kernel's name."""


def counts_text(profile: Profile, source: str) -> str:
    """Every table of counts, each under its title; ends without a line end."""
    tables = (
        *measured_tables(profile), *detail_tables(profile), resources(profile), *compiled(profile),
        hottest_lines(profile, source),
    )  # fmt: skip
    return "\n\n".join(table_text(table) for table in tables if table.rows)


def table_text(table: CountTable) -> str:
    """One table in aligned columns, its note below."""
    header = tuple(title for title, _ in table.columns)
    rows = [header, *(tuple(_short(visible(cell)) for cell in row) for row in table.rows)]
    right = {index for index, (_, figures) in enumerate(table.columns) if figures}
    note = paragraph(table.note, "  ") if table.note else []
    return "\n".join([*paragraph(visible(table.title)), *table_lines(rows, right=right), *note])


def _short(cell: str) -> str:
    flat = cell.replace("\n", " ").replace("\t", " ")
    return flat if len(flat) <= _WIDEST else f"{flat[: _WIDEST - 1]}…"
