"""The rounds of a session as a table for a terminal."""

from __future__ import annotations

from cutegen_nb.analysis.summary import (
    RoundSummary,
    counted_figures,
    outcome,
    rows,
    simulated,
    timed_figures,
)
from cutegen_nb.core.session import Session
from cutegen_nb.report.fitting import paragraph, table_lines
from cutegen_nb.report.markup import visible

_WIDEST = 28
"""Longer names are cut: the table has to fit 100 columns."""


def table(session: Session) -> str:
    """Rounds in aligned columns, then what the session came to; ends with a line end."""
    counted = simulated(session)
    source = "simulated counts, no times" if counted else f"measured on {session.device.name}"
    title = f"{session.name}: {session.facts.workload_class.value}, {source}"
    figures = ("sectors", "warp instr.", "÷ least") if counted else ("latency", "speedup", "of roof")
    heading = ("round", "strategy", "verdict", "against best", *figures, "decision")
    body = [_cells(item, counted=counted) for item in rows(session)]
    lines = paragraph(visible(title))
    if body:
        lines += table_lines([heading, *body], right={4, 5, 6})
    ended = paragraph(f"Ended: {visible(session.stopped)}") if session.stopped else []
    return "\n".join([*lines, "", *paragraph(visible(outcome(session))), *ended]) + "\n"


def _cells(item: RoundSummary, *, counted: bool) -> tuple[str, ...]:
    return (
        f"{item.revision}{' *' if item.best else ''}",
        cut(item.strategy) or "–",
        item.verdict,
        item.relation or "–",
        *(counted_figures(item) if counted else timed_figures(item)),
        item.decision or "–",
    )


def cut(name: str) -> str:
    """A name on one line, made visible and no longer than a column may be."""
    shown = visible(name).replace("\n", " ").replace("\t", " ")
    return shown if len(shown) <= _WIDEST else f"{shown[: _WIDEST - 1]}…"
