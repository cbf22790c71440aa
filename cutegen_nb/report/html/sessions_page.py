"""Page of all sessions as one HTML file: the table, and a gallery of the finished kernels."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from cutegen_nb.analysis.history.session_summary import RevisionSummary, SessionSummary
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.session import Session
from cutegen_nb.report.html import diff
from cutegen_nb.report.html.code import listing
from cutegen_nb.report.html.page import check_target, write_whole
from cutegen_nb.report.html.sessions_table import SCRIPT, lead, sessions_table
from cutegen_nb.report.markup import Style, fill

MOST_SHOWN = 24
"""Most kernels of the gallery."""

Load = Callable[[str, Sequence[int]], Session]
"""Reads a session with some of its rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryEntry:
    """Finished kernel of the gallery, with the first kernel that it came from."""

    summary: SessionSummary
    """Its session."""
    first: RevisionSummary
    """First approved revision."""
    best: RevisionSummary
    """Best revision."""
    problem: Markup
    """Listing of the problem."""
    before: Markup
    """Listing of the first kernel; empty where it is the best."""
    after: Markup
    """Listing of the best kernel."""
    change: Markup
    """Diff from the first to the best; empty where they are the same."""


def write_sessions_page(
    sessions: Sequence[SessionSummary], damaged: Mapping[str, str], load: Load, path: str, folder: Path
) -> str:
    """Write the page to `path` atomically and return the path; reports in `folder` are linked.

    Raises UsageError for another suffix and a missing folder, StoreError if it cannot be written.
    """
    target = check_target(path, "sessions.html")

    def link(name: str) -> str:
        report = folder / f"{name}.html"
        is_beside = report.is_file() and report.parent.resolve() == target.parent.resolve()
        return f"./{name}.html" if is_beside else ""

    write_whole(render(sessions, damaged, load, link), target)
    return str(target)


def render(
    sessions: Sequence[SessionSummary],
    damaged: Mapping[str, str],
    load: Load,
    link: Callable[[str], str] = lambda _: "",
) -> Markup:
    """Return the whole page."""
    finished = finished_kernels(sessions)
    return fill(
        "sessions_page",
        Style.PAGE,
        lead=lead(sessions),
        count=len(sessions),
        table=sessions_table(sessions, damaged=damaged, link=link),
        gallery=[_entry(item, load) for item in finished[:MOST_SHOWN]],
        finished=len(finished),
        script=Markup(SCRIPT),  # noqa: S704 - a file of the package
        script_hash=base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode(),
    )


def finished_kernels(sessions: Sequence[SessionSummary]) -> list[SessionSummary]:
    """Return the session with the fastest kernel of each problem on each device, the largest gain first."""
    fastest: dict[tuple[str, str], SessionSummary] = {}
    for item in sessions:
        if item.best is None:
            continue
        key = (item.problem_digest, item.device)
        if key not in fastest or _speed(item) <= _speed(fastest[key]):
            fastest[key] = item
    return sorted(fastest.values(), key=lambda item: item.gain or 0.0, reverse=True)


def _speed(item: SessionSummary) -> tuple[bool, float]:
    """Return what orders the kernels of one problem: measured ones first, then by time."""
    shown = item.shown
    if shown is None or shown.seconds is None:
        return (True, float("inf"))
    return (not shown.is_measured, shown.seconds)


def _entry(item: SessionSummary, load: Load) -> GalleryEntry:
    by_number = {one.number: one for one in item.revisions}
    assert item.best is not None
    best = by_number[item.best]
    # A kernel measured elsewhere may be the best without a first one that was approved here.
    first = by_number[item.best if item.first is None else item.first]
    session = load(item.name, (first.number, best.number))
    before, after = _candidate(session, first), _candidate(session, best)
    is_same = before.digest == after.digest
    names = {"old_name": f"r{first.number}", "new_name": f"r{best.number}"}
    return GalleryEntry(
        summary=item,
        first=first,
        best=best,
        problem=listing(session.problem.source, Style.PAGE),
        before=Markup() if is_same else listing(before.source, Style.PAGE),
        after=listing(after.source, Style.PAGE),
        change=Markup() if is_same else diff.render(before.source, after.source, style=Style.PAGE, **names),
    )


def _candidate(session: Session, revision: RevisionSummary) -> Candidate:
    found = next(item.candidate for item in session.rounds if item.number == revision.number)
    assert found is not None  # it was approved
    return found
