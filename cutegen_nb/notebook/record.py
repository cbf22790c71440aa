"""The durable record: plain HTML with inline styles and one picture, readable with no kernel and no trust.

JupyterLab's sanitiser drops style sheets, variables and scripts from a notebook it does not trust; what is
made here has none.
"""

from __future__ import annotations

import base64

from cutegen_nb.analysis.summary import outcome, revision, rows, simulated
from cutegen_nb.core.session import Session
from cutegen_nb.report import roofline_plot, rounds
from cutegen_nb.report.code import listing
from cutegen_nb.report.markup import Style, folded, safe
from cutegen_nb.report.text import table

_SIMULATED = (
    "Simulated counts: instructions, memory sectors and errors are exact; no kernel was timed, "
    "and no figure here is a kernel’s time."
)


def record(session: Session, state: str = "") -> dict[str, str]:
    """The session by MIME type: ``text/html`` and ``text/plain``. `state` says what it waits for."""
    return {"text/html": _html(session, state), "text/plain": _text(session, state)}


def waiting(name: str, state: str) -> dict[str, str]:
    """The same before there is a session to show."""
    return {"text/html": f"<p><b>{safe(name)}</b>: {safe(state)}</p>", "text/plain": f"{name}: {state}"}


def _text(session: Session, state: str) -> str:
    return table(session) + (f"{state}\n" if state and state != session.stopped else "")


def _html(session: Session, state: str) -> str:
    facts = session.facts
    kind = f"{facts.workload_class.value}, {facts.dtype}; written by {session.author}"
    ended = session.stopped or state
    parts = [
        f"<p><b>{safe(session.name)}</b> ({safe(kind)}). {safe(outcome(session))} {safe(ended)}</p>",
        f"<p>{safe(_SIMULATED if simulated(session) else f'Measured on {session.device.name}.')}</p>",
    ]
    if session.rounds:
        parts.append(rounds.overview(session, style=Style.RECORD))
        parts.append(_roofline(session))
        parts += _sections(session)
    parts.append(folded(Style.RECORD, "The problem", listing(session.problem.source, Style.RECORD)))
    return f"<div>{''.join(parts)}</div>"


def _roofline(session: Session) -> str:
    image = roofline_plot.png(session)
    words = "".join(f"<li>{safe(line)}</li>" for line in roofline_plot.describe(session))
    told = folded(Style.RECORD, "The roofline in words", f"<ul>{words}</ul>")
    if image is None:
        return told
    data = base64.b64encode(image).decode()
    picture = (
        f'<img src="data:image/png;base64,{data}" width="675" '
        'alt="Roofline with the problem and each passing kernel; the same in words below.">'
    )
    return f"<p>{picture}<br>{safe(roofline_plot.caption(session))}</p>{told}"


def _sections(session: Session) -> list[str]:
    titles = {
        row.revision: " · ".join(part for part in (row.revision, row.strategy, row.verdict) if part)
        for row in rows(session)
    }
    return [
        folded(Style.RECORD, titles[revision(item)], rounds.section(session, item, style=Style.RECORD))
        for item in session.rounds
    ]
