"""HTML section of a population: its kernels, its epochs, and a chart of their speeds."""

from __future__ import annotations

from markupsafe import Markup

from cutegen_nb.analysis.figures.quantity import duration, times
from cutegen_nb.analysis.hardware.zone import zone
from cutegen_nb.analysis.history.summary import simulated
from cutegen_nb.analysis.population.epochs import epoch_line, epoch_summaries
from cutegen_nb.analysis.population.summary import PopulationRow, population_rows, speed_source
from cutegen_nb.core.round import Epoch
from cutegen_nb.core.session import Session
from cutegen_nb.report.html.population_chart import population_chart
from cutegen_nb.report.markup import Style, fill

_DASH = "–"


def population_section(
    session: Session, *, style: Style = Style.PAGE, draft: Epoch | None = None, drawn: bool = True
) -> Markup:
    """Return the chart, the table of kernels and the epochs; empty for a chain.

    `draft` is an epoch that is not over yet. Without `drawn` there is no chart.
    """
    found = population_rows(session, draft)
    if not any(row.epoch for row in found):
        return Markup()
    source = speed_source(session)
    place = zone(session.facts, session.device)
    return fill(
        "population",
        style,
        rows=[(row, _descent(row), _cells(row)) for row in found],
        epochs=epoch_summaries(session, draft),
        columns=(
            ("Kernel", False),
            ("Epoch and move", False),
            ("Strategy", False),
            ("Speed", True),
            ("Time", True),
            ("In force", False),
            ("Limit", False),
            ("Member after epoch", False),
        ),
        caption=f"Speed is the first kernel’s time ÷ the kernel’s time; times are {source}"
        + (" from counts at full size" if simulated(session) and source == "estimated" else ""),
        zone=place.text() if place else "",
        chart=population_chart(session, draft) if drawn else "",
        best=session.best.number if session.best else None,
        epoch_line=epoch_line,
    )


def _descent(row: PopulationRow) -> str:
    if not row.epoch:
        return "before the first epoch"
    parents = " and ".join(f"r{number}" for number in row.parents)
    return f"{row.epoch}, {row.move} of {parents}" if parents else f"{row.epoch}, {row.move}"


def _cells(row: PopulationRow) -> tuple[str, str, str, str, str]:
    """Return speed, time, optimisations in force, limit and epochs of a row as text; dashes without them."""
    return (
        times(row.speed) if row.speed is not None else _DASH,
        duration(row.seconds) if row.seconds is not None else _DASH,
        row.optimisations or _DASH,
        row.bound or _DASH,
        ", ".join(map(str, row.member_of)) or _DASH,
    )
