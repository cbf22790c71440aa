"""A session as a file; what is written is what the suffix says."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

from cutegen_nb.analysis.summary import revision
from cutegen_nb.core.codec import encode
from cutegen_nb.core.session import Session
from cutegen_nb.notebook.faults import NotebookUsageError

SUFFIXES = (".py", ".html", ".cutegen")


def export(session: Session, path: str) -> str:
    """Write ``.py`` the best kernel, ``.html`` the report, ``.cutegen`` everything; gives a sentence.

    Raises UsageError for another suffix, for ``.py`` before anything was approved, and where the file
    cannot be written; StoreError when the report cannot.
    """
    target = Path(path).expanduser()
    write = _WRITERS.get(target.suffix)
    if write is None:
        raise NotebookUsageError(
            f"{path!r} does not say what to write: end it in .py (the best kernel), .html (the report) "
            "or .cutegen (the whole session)"
        )
    try:
        return write(session, target)
    except OSError as error:
        raise NotebookUsageError(
            f"{path} cannot be written ({error.strerror}): choose another folder"
        ) from error


def _kernel(session: Session, target: Path) -> str:
    best = session.best
    if best is None or best.candidate is None:
        raise NotebookUsageError(
            f"no revision of {session.name} is approved yet: there is no kernel to export"
        )
    target.write_text(best.candidate.source, encoding="utf-8")
    return f"{target}: {revision(best)} of {session.name}, {len(best.candidate.source.splitlines())} lines."


def _report(session: Session, target: Path) -> str:
    from cutegen_nb.report.html import write_report  # noqa: PLC0415 - matplotlib takes a second to import

    write_report(session, str(target))
    return f"{target}: the report of {session.name}, one file that needs nothing else."


def _bundle(session: Session, target: Path) -> str:
    """A zip: the session as core.codec writes it, and each kernel as a file."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("session.json", json.dumps(encode(session), indent=1))
        bundle.writestr("problem.py", session.problem.source)
        for item in session.rounds:
            if item.candidate:
                bundle.writestr(f"{revision(item)}.py", item.candidate.source)
    return f"{target}: {session.name} whole, {len(session.rounds)} rounds."


_WRITERS: dict[str, Callable[[Session, Path], str]] = {".py": _kernel, ".html": _report, ".cutegen": _bundle}
