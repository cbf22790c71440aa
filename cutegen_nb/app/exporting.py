"""Export of a session to a file: the kernel, the HTML report or the whole session, by suffix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cutegen_nb.analysis.history.summary import revision
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import Evaluation, NotJudged, Tier
from cutegen_nb.core.library import library_words
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.report.kernel_file import kernel_file
from cutegen_nb.store.bundle import SUFFIX, PackedSession, packed, write_bundle
from cutegen_nb.wiring import versions

SUFFIXES = (".py", ".html", SUFFIX)
"""Suffixes that `export` accepts: kernel, report and session bundle."""


Judge = Callable[[Candidate], Evaluation]
"""Evaluates a candidate at tier C, the last tier."""


def export(session: Session, path: str, judge: Judge | None) -> str:
    """Write the best kernel (``.py``), the report (``.html``) or the whole session (``.cutegen``).

    A kernel is evaluated by `judge` before it is written; with None it is written as it was approved.
    Returns a sentence that describes the file.

    Raises UsageError for another suffix, for ``.py`` before anything was approved or when tier C refuses the
    kernel, and where the file cannot be written.
    """
    target = Path(path).expanduser()
    write = _WRITERS.get(target.suffix)
    if target.suffix not in SUFFIXES:
        raise UsageError(
            f"{path!r} does not say what to write: end it in .py (the best kernel), .html (the report) "
            f"or {SUFFIX} (the whole session)"
        )
    try:
        return write(session, target) if write is not None else _kernel(session, target, judge)
    except OSError as error:
        raise _not_written(path, error) from error


def best_to_export(session: Session) -> Candidate:
    """Return the kernel that an export writes. Raises UsageError before any was approved."""
    if session.best is None or session.best.candidate is None:
        raise UsageError(f"no revision of {session.name} is approved yet: there is no kernel to export")
    return session.best.candidate


def ensure_writable(path: str) -> None:
    """Raise UsageError for a file that cannot be written, before minutes of evaluation are spent on it."""
    target = Path(path).expanduser()
    is_new = not target.exists()
    try:
        target.touch()
    except OSError as error:
        raise _not_written(path, error) from error
    if is_new:
        target.unlink()


def _kernel(session: Session, target: Path, judge: Judge | None) -> str:
    candidate, best = best_to_export(session), session.best
    assert best is not None
    target.touch()  # fails now if the file cannot be written, not after a minute of evaluation
    if judge is None:
        beside = f" {library_words(best.evaluation.library)}" if best.evaluation else ""
        tier = f"{_approved_at(best)}{beside}".rstrip()
        judged = f"It was judged at tier {tier}, and tier C was left out as you asked."
    else:
        judged = _judged(judge(candidate), best, target)
    name = f"{revision(best)} of {session.name}"
    text = kernel_file(
        candidate.source,
        session.problem,
        revision=name,
        judged=judged,
        environment=session.environment if judge is None and session.environment else versions(),
    )
    target.write_text(text, encoding="utf-8")
    lines = len(candidate.source.splitlines())
    return f"{target}: {name}, {lines} lines. {judged}"


def _judged(found: Evaluation, best: Round, target: Path) -> str:
    """Return the outcome of tier C in a sentence.

    Raises UsageError when tier C finds the kernel wrong, or passes it only provisionally. A kernel that a
    person approved against the evidence, or that tier C could not judge, is exported all the same.
    """
    overruled = best.evaluation is not None and not best.evaluation.passed
    if found.stands:
        beside = f", {library_words(found.library)}" if found.library else ""
        return f"It passed tier C on {found.device}{beside}."
    if isinstance(found.outcome, NotJudged) or overruled:
        by = " and was overruled by a person" if overruled else ""
        return f"It was judged at tier {_approved_at(best)}{by}; tier C gave {found.label}."
    # An empty target is the one that `_kernel` touched.
    if not target.stat().st_size:
        target.unlink()
    if found.provisional:
        raise UsageError(
            f"{revision(best)} passed tier C only provisionally, so {target} was not written: "
            f"{'; '.join(found.provisional)}. Export again on a quieter machine, or with --unchecked"
        )
    raise UsageError(
        f"{revision(best)} does not pass tier C, so {target} was not written. {found.label}: {found.summary} "
        "Take another revision, or export it all the same with --unchecked"
    )


def _approved_at(best: Round) -> str:
    return (best.evaluation.tier if best.evaluation is not None else Tier.A).value


def _report(session: Session, target: Path) -> str:
    from cutegen_nb.report.html.session_page import write_report  # noqa: PLC0415 - matplotlib takes a second to import

    write_report(session, str(target))
    return f"{target}: the report of {session.name}, one file that needs nothing else."


def _bundle(session: Session, target: Path) -> str:
    return export_packed(packed(session), str(target))


def is_bundle(path: str) -> bool:
    """Return whether a file of this name takes a whole session."""
    return Path(path).suffix == SUFFIX


def export_packed(whole: PackedSession, path: str) -> str:
    """Write a whole session (``.cutegen``) and return a sentence on the file. Raises UsageError."""
    target = Path(path).expanduser()
    try:
        write_bundle(whole, target, versions())
    except OSError as error:
        raise _not_written(path, error) from error
    rounds = "1 round" if whole.rounds == 1 else f"{whole.rounds} rounds"
    return f"{target}: {whole.name} whole, {rounds}."


def _not_written(path: str, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be written ({error.strerror}): choose another folder")


_WRITERS: dict[str, Callable[[Session, Path], str]] = {".html": _report, SUFFIX: _bundle}
"""Writers by suffix; ``.py`` goes to `_kernel`, which needs a judge."""
