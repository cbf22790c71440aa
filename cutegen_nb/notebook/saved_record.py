"""Record of a session in the notebook file: HTML with inline styles, readable without a kernel.

JupyterLab's sanitiser drops style sheets, variables and scripts from an untrusted notebook. The record is
readable without them. Its style sheets fold columns in a narrow cell and show the dark picture on dark pages.
"""

from __future__ import annotations

import base64
import hashlib

from markupsafe import Markup

from cutegen_nb.analysis.history.ended import ended_words
from cutegen_nb.analysis.history.summary import outcome, parent_candidate, rows, simulated, size_words
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.report.html import diff, rounds
from cutegen_nb.report.html.code import listing
from cutegen_nb.report.html.population import population_section
from cutegen_nb.report.markup import Style, fill, visible, without_math
from cutegen_nb.report.roofline import plot
from cutegen_nb.report.terminal.session import table

_SECTIONS_CHARACTERS = 400_000
"""Most characters of sections that are kept whole: four or five rounds. Later sections are shortened, so that
ten rounds stay below a megabyte."""
_FOLDED_COUNTS = ":nth-last-child(2),:nth-last-child(3),:nth-last-child(4)"
"""Columns of the overview that a narrow cell leaves out: all counts, which stand beside the estimate."""
_FOLDED_TIMES = ":nth-last-child(2),:nth-last-child(4)"
"""The same for measured rounds: latency and share of the roof, which stand beside the speedup."""
_SIMULATED = (
    "Simulated counts: instructions, memory sectors and errors are exact; no kernel was timed, "
    "and each time is an estimate."
)


def record(session: Session, state: str = "", *, beside_panel: bool = False) -> dict[str, str]:
    """Return the record by MIME type: ``text/html`` and ``text/plain``. `state` is the reason of its end.

    With `beside_panel` the record is folded, because the live panel shows the same.
    """
    html = without_math(_html(session, state, is_folded=beside_panel))
    return {"text/html": html, "text/plain": _text(session, state)}


def waiting(name: str, state: str) -> dict[str, str]:
    """Return the record by MIME type before the session is open: name and state."""
    html = Markup("<p><b>{}</b>: {}</p>").format(visible(name), visible(state))
    return {"text/html": html, "text/plain": f"{name}: {state}"}


def _text(session: Session, state: str) -> str:
    return table(session) + (f"{visible(ended_words(state))}\n" if state and state != session.stopped else "")


def _html(session: Session, state: str, *, is_folded: bool) -> Markup:
    facts = session.facts
    light = plot.png(session) if session.rounds else None
    figures = _SIMULATED if simulated(session) else f"Measured on {session.device.name}."
    dark = (plot.png(session, dark=True) or light) if light else None
    return fill(
        "record",
        Style.RECORD,
        session=session,
        is_folded=is_folded,
        kind=f"{facts.workload_class.value}, {facts.dtype}; written by {session.author}",
        outcome=outcome(session),
        reason=ended_words(session.stopped or state).rstrip("."),
        figures=" ".join(filter(None, [figures, size_words(session)])),
        overview=rounds.overview(session, style=Style.RECORD),
        folded_columns=_FOLDED_COUNTS if simulated(session) else _FOLDED_TIMES,
        population=population_section(session, style=Style.RECORD, drawn=False),
        roofline=plot.describe(session),
        caption=plot.caption(session),
        pictures=(_address(light), _address(dark)) if light and dark else (),
        picture_name=f"cgn-roofline-{hashlib.sha256(light).hexdigest()[:12]}" if light else "",
        sections=_sections(session),
        source=listing(session.problem.source, Style.RECORD),
    )


def _address(image: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


def _sections(session: Session) -> list[tuple[str, Markup]]:
    """Return title and section of each round; the oldest are shortened beyond `_SECTIONS_CHARACTERS`."""
    found: list[tuple[str, Markup]] = []
    left = _SECTIONS_CHARACTERS
    for row, item in reversed(list(zip(rows(session), session.rounds, strict=True))):
        body = rounds.section(session, item, style=Style.RECORD) if left > 0 else _short(session, item)
        left -= len(body)
        title = " · ".join(part for part in (row.revision, row.strategy, row.verdict) if part)
        found.append((title, body))
    return found[::-1]


def _short(session: Session, item: Round) -> Markup:
    """Return the short section of a round: summary of its evaluation and diff from its parent."""
    candidate, evaluation, parent = item.candidate, item.evaluation, parent_candidate(session, item)
    return fill(
        "short_round",
        Style.RECORD,
        summary=evaluation.summary if evaluation else item.note,
        change=diff.render(parent.source, candidate.source) if candidate and parent else "",
    )
