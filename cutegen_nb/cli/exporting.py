"""A session as a file; what is written is what the suffix says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cutegen_nb.analysis.summary import revision
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import Evaluation, NotJudged, Tier
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.report.kernel_file import kernel_file
from cutegen_nb.store.bundle import SUFFIX, write_bundle
from cutegen_nb.wiring import versions

SUFFIXES = (".py", ".html", SUFFIX)


Judge = Callable[[Candidate], Evaluation]


def export(session: Session, path: str, judge: Judge | None) -> str:
    """Write ``.py`` the best kernel, ``.html`` the report, ``.cutegen`` everything; gives a sentence.

    A kernel passes `judge`, the last tier, before it is written; None writes it as it was approved.

    Raises UsageError for another suffix, for ``.py`` before anything was approved or when the last tier
    refuses it, and where the file cannot be written.
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
        raise UsageError(f"{path} cannot be written ({error.strerror}): choose another folder") from error


def best_to_export(session: Session) -> Candidate:
    """The kernel that an export writes. Raises UsageError before any was approved."""
    if session.best is None or session.best.candidate is None:
        raise UsageError(f"no revision of {session.name} is approved yet: there is no kernel to export")
    return session.best.candidate


def _kernel(session: Session, target: Path, judge: Judge | None) -> str:
    candidate, best = best_to_export(session), session.best
    assert best is not None
    target.touch()  # a place that cannot be written to is better told before a minute's judging
    if judge is None:
        judged = f"It was judged at tier {_approved_at(best)}, and tier C was left out as you asked."
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
    """What the last tier said, in a sentence. Raises UsageError when it found the kernel wrong."""
    overruled = best.evaluation is not None and not best.evaluation.passed
    if found.passed:
        return f"It passed tier C on {found.device}."
    if isinstance(found.outcome, NotJudged) or overruled:
        by = " and was overruled by a person" if overruled else ""
        return f"It was judged at tier {_approved_at(best)}{by}; tier C gave {found.label}."
    if not target.stat().st_size:
        target.unlink()
    raise UsageError(
        f"{revision(best)} does not pass tier C, so {target} was not written. {found.label}: {found.summary} "
        "Take another revision, or export it all the same with --unchecked"
    )


def _approved_at(best: Round) -> str:
    return (best.evaluation.tier if best.evaluation is not None else Tier.A).value


def _report(session: Session, target: Path) -> str:
    from cutegen_nb.report.html import write_report  # noqa: PLC0415 - matplotlib takes a second to import

    write_report(session, str(target))
    return f"{target}: the report of {session.name}, one file that needs nothing else."


def _bundle(session: Session, target: Path) -> str:
    write_bundle(session, target, versions())
    return f"{target}: {session.name} whole, {len(session.rounds)} rounds."


_WRITERS: dict[str, Callable[[Session, Path], str]] = {".html": _report, SUFFIX: _bundle}
