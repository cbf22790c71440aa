"""List of all sessions of a store: as text, as the output of a cell, and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import shorten

from markupsafe import Markup

from cutegen_nb.analysis.figures.quantity import moment
from cutegen_nb.analysis.history.ended import ended_words
from cutegen_nb.analysis.history.session_summary import SessionSummary
from cutegen_nb.app.output import columns
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.library import library_option
from cutegen_nb.report.html.sessions_page import write_sessions_page
from cutegen_nb.report.html.sessions_table import SCRIPT, lead, sessions_table
from cutegen_nb.report.markup import visible
from cutegen_nb.report.terminal.fitting import paragraph
from cutegen_nb.store.sqlite import SqliteStore

_WIDEST = 60
"""Most characters of an end's reason: a server's error has hundreds, and `sessions NAME` tells it whole."""
MOST_IN_NOTEBOOK = 200
"""Most sessions in the output of a cell, which is saved with the notebook: about 0.6 MB."""


def sessions_text(sessions: Sequence[SessionSummary], damaged: Mapping[str, str]) -> str:
    """Return the sessions as a plain table, then the errors of those that could not be read."""
    # Columns of their own, where any session has a policy or is a population.
    library = ("library",) if any(item.library for item in sessions) else ()
    epochs = ("epochs",) if any(item.epochs is not None for item in sessions) else ()
    names = ("session", "class", "device", "author", *library, "rounds", *epochs, "best", "created", "ended")
    rows = [
        (
            item.name,
            item.workload_class,
            item.device,
            item.author,
            *([library_option(item.library) or "-"] if library else []),
            str(item.rounds),
            *(["-" if item.epochs is None else str(item.epochs)] if epochs else []),
            "-" if item.best is None else f"r{item.best}",
            moment(item.created_at),
            shorten(ended_words(item.stopped), _WIDEST, placeholder=" …") or "may go on",
        )
        for item in sessions
    ]
    parts = [columns(names, rows)] if rows else []
    parts += ["\n".join(paragraph(reason, "  ", first="")) for reason in damaged.values()]
    return "\n\n".join(parts) or "no sessions yet"


def sessions_bundle(sessions: Sequence[SessionSummary], damaged: Mapping[str, str]) -> dict[str, str]:
    """Return the newest sessions as the output of a cell, by MIME type."""
    newest = sorted(sessions, key=lambda item: item.created_at)[-MOST_IN_NOTEBOOK:]
    left = f" The newest {len(newest)} are shown." if len(newest) < len(sessions) else ""
    html = Markup(
        "<p>{}{} <code>%cutegen sessions --html sessions.html</code> writes all as a page, with kernels."
        "</p>{}<script>{}</script>"
    ).format(
        visible(lead(sessions)),
        left,
        sessions_table(newest, damaged=damaged),
        Markup(SCRIPT),  # noqa: S704 - a file of the package
    )
    return {"text/html": html, "text/plain": visible(sessions_text(sessions, damaged))}


def write_sessions(store: SqliteStore, path: str, session: str | None) -> str:
    """Write the page of all sessions of `store` to `path` and return the path.

    Raises UsageError for another suffix than ``.html``, and where one `session` is named.
    """
    if session:
        raise UsageError(
            f"--html writes the table of all sessions: leave {session} out, "
            f"or write its own page with `cutegen-nb report {session} -o {session}.html`"
        )
    if Path(path).suffix != ".html":
        raise UsageError(f"--html {path!r} does not end in .html: write --html sessions.html")
    found, damaged = store.summaries()
    return write_sessions_page(found, damaged, store.load, str(Path(path).expanduser()), store.path.parent)
