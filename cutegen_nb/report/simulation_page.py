"""What a whole program did on the simulator, as HTML: a page of its own, or a notebook's record."""

from __future__ import annotations

from pathlib import PurePath

from cutegen_nb.analysis.count_tables import kernel_name
from cutegen_nb.analysis.lines import of_file
from cutegen_nb.core.evaluation import Finding, Severity
from cutegen_nb.core.simulation import Ending, Launches, ProgramRun
from cutegen_nb.report import counts_view, layout_view, line_view
from cutegen_nb.report.code import excerpt
from cutegen_nb.report.markup import Style, badge, folded, look, safe, table
from cutegen_nb.report.page import fact_list, page
from cutegen_nb.report.simulation import launch_row, notes, outcome, place

_AROUND = 2


def page_of(run: ProgramRun) -> str:
    """The whole page."""
    name = PurePath(run.script).name
    header = (
        f'<header><p class="kicker">Simulated program</p><h1>{safe(name)}</h1>'
        f'<p class="lead">{safe(outcome(run))}</p>{_notes(run, Style.PAGE)}{_facts(run)}</header>'
    )
    launches = f"{_launches(run, Style.PAGE)}{counts_view.compiled(run.profile, style=Style.PAGE)}"
    counts = f"{_counts(run, Style.PAGE)}{_layouts(run, Style.PAGE)}"
    body = f"{_findings(run, Style.PAGE)}{launches}{counts}"
    footer = "<footer><p>Written by cutegen-nb simulate.</p></footer>"
    return page(f"{name}: simulated program", f"{header}<main>{body}</main>{footer}")


def record_of(run: ProgramRun) -> str:
    """The same for a notebook: inline styles only, no script."""
    style = Style.RECORD
    kind = "bad" if run.decided or run.ending is not Ending.FINISHED else "good"
    words = "finding" if run.decided else run.ending.value
    head = f"<p>{badge(style, kind, words)} {safe(outcome(run))}</p>"
    launches = f"{_launches(run, style)}{counts_view.compiled(run.profile, style=style)}"
    counts = f"{_counts(run, style)}{_layouts(run, style)}"
    return f"{head}{_findings(run, style)}{launches}{_notes(run, style)}{counts}"


def _facts(run: ProgramRun) -> str:
    pairs = (
        ("Arguments", " ".join(run.arguments) or "none"),
        ("Compiled for", run.architecture),
        ("Figures", run.profile.source.value),
        ("Exit status", str(run.exit_status)),
    )
    return fact_list(pairs)


def _notes(run: ProgramRun, style: Style) -> str:
    css = ' class="notice"' if style is Style.PAGE else look(style, "muted")
    return "".join(f"<p{css}>{safe(item)}</p>" for item in notes(run))


def _findings(run: ProgramRun, style: Style) -> str:
    return "".join(_finding(run, item, style) for item in run.findings)


def _finding(run: ProgramRun, item: Finding, style: Style) -> str:
    kind = "bad" if item.severity is Severity.DECIDES else "neutral"
    code = excerpt(run.sources.get(item.file, ""), item.line, style, _AROUND) if item.line else ""
    card = f"<div{look(style, 'card')}>{code}</div>" if code else ""
    return f"<p>{badge(style, kind, item.kind)} {safe(place(item))}{safe(item.message)}</p>{card}"


def _launches(run: ProgramRun, style: Style) -> str:
    if not run.launches:
        return ""
    columns = (
        ("Launches", True),
        ("Kernel", False),
        ("Grid", False),
        ("Block", False),
        ("Shared memory", True),
        ("Sectors", True),
        ("÷ ideal", True),
        ("Wavefronts", True),
        ("Warp instr.", True),
    )
    caption = f"Kernel launches ({run.profile.source.value})"
    return table(style, caption, columns, tuple(_launch(item) for item in run.launches))


def _launch(item: Launches) -> tuple[str, ...]:
    profile = item.profile
    how_often, _, *rest = launch_row(item)
    name = f'<code title="{safe(profile.kernel)}">{safe(kernel_name(profile))}</code>'
    return (safe(how_often), name, *map(safe, rest))


def _counts(run: ProgramRun, style: Style) -> str:
    """Totals, and each of the program's files with its counts."""
    if not run.launches:
        return ""
    totals = counts_view.totals(run.profile, None, ("", "All launches"), style)
    totals += counts_view.details(run.profile, style)
    files = sorted({line.file for item in run.launches for line in item.profile.lines} & run.sources.keys())
    listings = "".join(
        folded(
            style,
            f"{PurePath(file).name} with its counts",
            line_view.render(of_file(run.profile, file), run.sources[file], style=style),
            is_open=style is Style.PAGE,
        )
        for file in files
    )
    return f"{folded(style, 'Totals of all launches', totals, is_open=style is Style.PAGE)}{listings}"


def _layouts(run: ProgramRun, style: Style) -> str:
    """What the program's kernels were compiled with."""
    drawn = style is Style.PAGE
    body = layout_view.layouts(run.layouts, names=("", "the program"), style=style, drawn=drawn)
    return folded(style, "Layouts", body, is_open=drawn) if body else ""
