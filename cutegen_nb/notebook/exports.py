"""A session as a file; what is written is what the suffix says."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

from cutegen_nb.analysis.summary import revision
from cutegen_nb.core.codec import encode
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.round import Round
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
    lines = len(best.candidate.source.splitlines())
    return f"{target}: {revision(best)} of {session.name}, {lines} lines. {_judged(best)}"


def _judged(best: Round) -> str:
    """How closely the exported kernel was looked at: the last tier is asked for and takes minutes."""
    found = best.evaluation
    if found is not None and found.tier is Tier.C:
        return "It passed tier C."
    tier = found.tier.value if found is not None else Tier.A.value
    overruled = "" if found is not None and found.passed else " and was overruled by a person"
    return (
        f"It was judged at tier {tier}{overruled}; tier C was not run: "
        "`cutegen-nb evaluate PROBLEM.py KERNEL.py --tier C` does."
    )


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
