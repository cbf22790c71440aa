"""Recorded sessions in a lesson: the table of a folder of bundles, and one session as a value."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from cutegen_nb.app.gallery import gallery_rows, gallery_text, read_gallery
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import CutegenError
from cutegen_nb.core.session import Session
from cutegen_nb.notebook.faults import NotebookUsageError, as_notebook_error
from cutegen_nb.notebook.handle import DisplayResult, SessionHandle, WorkerFunctions
from cutegen_nb.report.markup import Style, fill, visible
from cutegen_nb.store.bundle import read_bundle


def recordings(folder: str = "sessions") -> DisplayResult:
    """Return a table of a folder's ``.cutegen`` files: problem, device, times, gain, and what each teaches.

    Raises UsageError for a folder without bundles.
    """
    try:
        found = read_gallery(Path(folder))
    except CutegenError as error:
        raise as_notebook_error(error) from error
    html = fill("recordings", Style.RECORD, rows=gallery_rows(found)[1])
    return DisplayResult({"text/html": html, "text/plain": visible(gallery_text(found))})


def recording(path: str) -> SessionHandle:
    """Return the session of a ``.cutegen`` file, with its rounds, kernels and decisions. Nothing of it runs.

    Raises UsageError for a file that is no bundle.
    """
    try:
        session = read_bundle(Path(path))
    except CutegenError as error:
        raise as_notebook_error(error) from error
    return SessionHandle(session.name, lambda: session, WorkerFunctions(make=_not_here, judge=_not_here))


def _not_here(session: Session, candidate: Candidate) -> NoReturn:  # noqa: ARG001 - a worker function's parameters
    raise NotebookUsageError(
        f"{session.name} is a recording and runs nothing: `cutegen-nb import` takes its file over, and "
        f"`%cutegen resume {session.name}` goes on from it"
    )
