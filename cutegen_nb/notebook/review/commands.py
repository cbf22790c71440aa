"""Handlers of the line magics that show or compare revisions."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from cutegen_nb.analysis.history.summary import revision
from cutegen_nb.analysis.source.diff import LineKind
from cutegen_nb.analysis.source.diff import diff as changes
from cutegen_nb.core.compiled.listing import CodeListing, CodeRow
from cutegen_nb.core.profile import function_name
from cutegen_nb.core.round import Round
from cutegen_nb.notebook.faults import NotebookUsageError
from cutegen_nb.notebook.handle import DisplayResult
from cutegen_nb.notebook.session_registry import SessionRegistry
from cutegen_nb.report.html import diff as diff_view
from cutegen_nb.report.markup import visible

Options = argparse.Namespace

_SIGNS = {LineKind.SAME: " ", LineKind.ADDED: "+", LineKind.REMOVED: "-"}
"""First character of a line of a diff as text."""


def diff(desk: SessionRegistry, options: Options) -> DisplayResult:
    """Show the diff of two revisions, by default the last two with a candidate."""
    session = desk.stored_handle(options.name, None).session
    able = [item for item in session.rounds if item.candidate]
    words = options.revisions or [revision(item) for item in able[-2:]]
    if len(words) != 2:  # noqa: PLR2004 - a pair
        raise NotebookUsageError(
            f"a diff needs two revisions: {session.name} has "
            f"{', '.join(revision(item) for item in able) or 'none yet'}"
        )
    old, new = (_named(able, word, session.name) for word in words)
    assert old.candidate is not None
    assert new.candidate is not None
    before, after, names = old.candidate.source, new.candidate.source, (revision(old), revision(new))
    plain = _unified(before, after, names)
    html = diff_view.render(before, after, old_name=names[0], new_name=names[1])
    return DisplayResult(
        {"text/html": html, "text/plain": visible(plain) or f"{names[1]} is identical to {names[0]}."}
    )


def compare(desk: SessionRegistry, options: Options) -> str:
    """Compare every round in the panel with one revision, or each with its parent again."""
    running = desk.find(options.name)
    if options.revision == "parent":
        desk.screen(running).compare_with(None)
        return "Each round is compared with its parent."
    session = running.session
    found = _named(
        [item for item in session.rounds if item.candidate] if session else [], options.revision, running.name
    )
    desk.screen(running).compare_with(found.number)
    return f"Every round is compared with {revision(found)}."


def ptx(desk: SessionRegistry, options: Options) -> DisplayResult:
    """Show the PTX of a revision, or with ``--sass`` its machine code, by default of the best one."""
    session = desk.stored_handle(options.name, None).session
    able = [item for item in session.rounds if item.evaluation and item.evaluation.code]
    if not able:
        raise NotebookUsageError(
            f"no revision of {session.name} has its compiled code: an older version made them, or no kernel "
            "of them was compiled"
        )
    best = session.best if session.best in able else able[-1]
    item = _named(able, options.revision, session.name) if options.revision else best
    assert item.candidate is not None
    assert item.evaluation is not None
    language = "SASS" if options.sass else "PTX"
    found = [one for one in item.evaluation.code if one.language == language]
    texts = [_listed(one, function_name(one.kernel, item.candidate.source)) for one in found]
    return DisplayResult(
        {"text/plain": visible("\n\n".join(texts)) or f"{revision(item)} has no {language}."}
    )


def _listed(listing: CodeListing, kernel: str) -> str:
    """Return a listing as text: line of the source, executions by warps, code."""
    try:
        rows: Sequence[CodeRow] = listing.rows()
    except ValueError as error:
        return f"{kernel}: {error}"
    title = f"{kernel}, {listing.language}: line of the source, executions by warps, code"
    lines = [
        f"{row.line or '':>5} {row.executions if row.executions >= 0 else '':>10}  {row.text}" for row in rows
    ]
    return "\n".join([title, *([listing.note] if listing.note else []), *lines])


def _unified(before: str, after: str, names: tuple[str, str]) -> str:
    """Return the diff as text, aligned as the panel and the HTML show it; empty for equal texts."""
    lines = []
    for hunk in changes(before, after, context=1).hunks:
        old, new = (
            f"{start + 1 if stop > start else start},{stop - start}"
            for start, stop in ((hunk.old_start, hunk.old_stop), (hunk.new_start, hunk.new_stop))
        )
        lines.append(f"@@ -{old} +{new} @@")
        lines += [f"{_SIGNS[line.kind]}{line.text}" for line in hunk.lines]
    return "\n".join([f"--- {names[0]}", f"+++ {names[1]}", *lines]) if lines else ""


def _named(able: list[Round], word: str, name: str) -> Round:
    found = next((item for item in able if word.removeprefix("r") == str(item.number)), None)
    if found is None:
        known = ", ".join(revision(item) for item in able) or "none yet"
        raise NotebookUsageError(f"{name} has no revision {word!r}: there is {known}")
    return found
