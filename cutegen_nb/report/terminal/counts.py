"""Text tables of a candidate's counts for a terminal; the same tables as on the HTML page."""

from __future__ import annotations

from cutegen_nb.analysis.tables.compiled_code import compiled
from cutegen_nb.analysis.tables.counts import CountTable, detail_tables, resources
from cutegen_nb.analysis.tables.line_heat import hottest_lines
from cutegen_nb.analysis.tables.measured import measured_tables
from cutegen_nb.core.profile import Profile
from cutegen_nb.report.markup import visible
from cutegen_nb.report.terminal.fitting import paragraph, table_lines

_WIDEST = 48
"""Most characters of a cell; longer ones, such as source lines and kernel names, are cut."""


def counts_text(profile: Profile, source: str) -> str:
    """Format every table of counts with its title; there is no newline at the end."""
    tables = (
        *measured_tables(profile), *detail_tables(profile), resources(profile), *compiled(profile),
        hottest_lines(profile, source),
    )  # fmt: skip
    return "\n\n".join(table_text(table) for table in tables if table.rows)


def table_text(table: CountTable) -> str:
    """Format one table in aligned columns, its note below."""
    header = tuple(title for title, _ in table.columns)
    rows = [header, *(tuple(_short(visible(cell)) for cell in row) for row in table.rows)]
    right = {index for index, (_, figures) in enumerate(table.columns) if figures}
    note = paragraph(table.note, "  ") if table.note else []
    return "\n".join([*paragraph(visible(table.title)), *table_lines(rows, right=right), *note])


def _short(cell: str) -> str:
    flat = cell.replace("\n", " ").replace("\t", " ")
    return flat if len(flat) <= _WIDEST else f"{flat[: _WIDEST - 1]}…"
