"""HTML report of a simulated program, as a page or as a notebook's output."""

from __future__ import annotations

from pathlib import PurePath

from markupsafe import Markup

from cutegen_nb.analysis.source.lines import of_file
from cutegen_nb.analysis.tables.counts import kernel_name
from cutegen_nb.core.finding import Finding
from cutegen_nb.core.simulation import ProgramRun
from cutegen_nb.report.html import counts as counts_view
from cutegen_nb.report.html import layouts, lines
from cutegen_nb.report.html.code import excerpt
from cutegen_nb.report.markup import Style, fill
from cutegen_nb.report.program.text import launch_row, notes, outcome, place

_AROUND = 2
"""Source lines shown before and after a finding."""


def page_of(run: ProgramRun) -> Markup:
    """Return the whole HTML page."""
    return _fill("program_page", run, Style.PAGE)


def record_of(run: ProgramRun) -> Markup:
    """Return the report for a notebook: inline styles only, no script."""
    return _fill("program_record", run, Style.RECORD)


def _fill(template: str, run: ProgramRun, style: Style) -> Markup:
    is_page = style is Style.PAGE
    return fill(
        template,
        style,
        run=run,
        name=PurePath(run.script).name,
        outcome=outcome(run),
        notes=notes(run),
        facts=_facts(run),
        findings=[(item, place(item), _code(run, item, style)) for item in run.findings],
        launches=[(item, launch_row(item)) for item in run.launches],
        kernel_name=kernel_name,
        compiled=counts_view.compiled(run.profile, style=style),
        totals=counts_view.totals(run.profile, None, ("", "All launches"), style),
        details=counts_view.details(run.profile, style),
        listings=_listings(run, style),
        layouts=layouts.layouts(run.layouts, names=("", "the program"), style=style, drawn=is_page),
    )


def _facts(run: ProgramRun) -> tuple[tuple[str, str], ...]:
    return (
        ("Arguments", " ".join(run.arguments) or "none"),
        ("Compiled for", run.architecture),
        ("Figures", run.profile.source.value),
        ("Exit status", str(run.exit_status)),
    )


def _code(run: ProgramRun, item: Finding, style: Style) -> Markup:
    return excerpt(run.sources.get(item.file, ""), item.line, style, _AROUND) if item.line else Markup()


def _listings(run: ProgramRun, style: Style) -> list[tuple[str, Markup]]:
    """Return each of the program's files with its counts."""
    files = sorted({line.file for item in run.launches for line in item.profile.lines} & run.sources.keys())
    return [
        (PurePath(file).name, lines.render(of_file(run.profile, file), run.sources[file], style=style))
        for file in files
    ]
