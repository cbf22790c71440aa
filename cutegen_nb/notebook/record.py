"""The durable record: plain HTML with inline styles and one picture, readable with no kernel and no trust.

JupyterLab's sanitiser drops style sheets, variables and scripts from a notebook it does not trust; what is
made here needs none. The one sheet there is shows the dark picture on a dark page.
"""

from __future__ import annotations

import base64
import hashlib

from cutegen_nb.analysis.summary import outcome, parent_candidate, revision, rows, simulated
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.report import diff_view, roofline_plot, rounds
from cutegen_nb.report.code import listing
from cutegen_nb.report.markup import Style, folded, safe, visible
from cutegen_nb.report.text import table

_SECTIONS_CHARACTERS = 400_000
"""Of whole sections: four or five rounds. A notebook with ten rounds stays below a megabyte."""
_DARK_PAGE = ':is([data-jp-theme-light="false"],[data-vscode-theme-kind*="dark"])'
_SIMULATED = (
    "Simulated counts: instructions, memory sectors and errors are exact; no kernel was timed, "
    "and no figure here is a kernel’s time."
)


def record(session: Session, state: str = "", *, beside_panel: bool = False) -> dict[str, str]:
    """The session by MIME type: ``text/html`` and ``text/plain``. `state` says why it ended.

    Beside a live panel, which shows the same, it is folded; it is in the saved file all the same.
    """
    html = _html(session, state)
    if beside_panel:
        number = len(session.rounds)
        title = f"Record of {session.name}, kept in this file: {number} round{'' if number == 1 else 's'}"
        html = folded(Style.RECORD, title, html)
    return {"text/html": html, "text/plain": _text(session, state)}


def waiting(name: str, state: str) -> dict[str, str]:
    """The same before there is a session to show."""
    return {"text/html": f"<p><b>{safe(name)}</b>: {safe(state)}</p>", "text/plain": f"{name}: {state}"}


def _text(session: Session, state: str) -> str:
    return table(session) + (f"{visible(state)}\n" if state and state != session.stopped else "")


def _html(session: Session, state: str) -> str:
    facts = session.facts
    kind = f"{facts.workload_class.value}, {facts.dtype}; written by {session.author}"
    reason = session.stopped or state
    ended = f"Ended: {reason.rstrip('.')}." if reason else ""
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
    picture, sheet = _picture(image, roofline_plot.png(session, dark=True) or image)
    return f"{sheet}<p>{picture}<br>{safe(roofline_plot.caption(session))}</p>{told}"


def _picture(light: bytes, dark: bytes) -> tuple[str, str]:
    """The picture, and the sheet that puts the dark one in its place on a dark page of JupyterLab or VS Code.

    Where the sheet is dropped (an untrusted notebook, GitHub) the light one stays, on a ground of its own.
    """
    name = f"cgn-roofline-{hashlib.sha256(light).hexdigest()[:12]}"
    picture = (
        f'<img class="{name}" src="{_address(light)}" width="675" '
        'alt="Roofline with the problem and each passing kernel; the same in words below.">'
    )
    return picture, f"<style>{_DARK_PAGE} .{name}{{content:url({_address(dark)})}}</style>"


def _address(image: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


def _sections(session: Session) -> list[str]:
    """A fold for each round; the oldest are shortened when all together would burden the notebook's file."""
    titles = {
        row.revision: " · ".join(part for part in (row.revision, row.strategy, row.verdict) if part)
        for row in rows(session)
    }
    found: list[str] = []
    left = _SECTIONS_CHARACTERS
    for item in reversed(session.rounds):
        body = rounds.section(session, item, style=Style.RECORD) if left > 0 else _short(session, item)
        left -= len(body)
        found.append(folded(Style.RECORD, titles[revision(item)], body))
    return found[::-1]


def _short(session: Session, item: Round) -> str:
    """What was changed and whether it was right; the rest is in the exported report."""
    candidate, evaluation, parent = item.candidate, item.evaluation, parent_candidate(session, item)
    said = f"<p>{safe(evaluation.summary if evaluation else item.note)}</p>"
    told = "<p>Counts and prompt are in the report: export it as .html.</p>"
    if candidate is None or parent is None:
        return said + told
    return said + diff_view.render(parent.source, candidate.source) + told
