"""Batches: export of candidates for evaluation on another machine's GPU, and import of the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cutegen_nb.analysis.history.compare import compare
from cutegen_nb.core.batch import Job, Measurement, Result
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.library import library_words
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """Outcome of importing a file of results."""

    measurements: tuple[Measurement, ...] = ()
    """New measurements, in the order of the rounds."""
    repeated: int = 0
    """Number of results that were imported before."""
    failed: tuple[str, ...] = ()
    """Sentence for each result in which the evaluator failed; its job is still pending."""
    refused: tuple[str, ...] = ()
    """Sentence for each result that belongs to no job of this session."""


def pending_jobs(
    session: Session, *, tier: Tier = Tier.B, every: bool = False, again: bool = False
) -> tuple[Job, ...]:
    """List jobs for the candidates without any timing, in the order of the rounds.

    Jobs are made for candidates that passed and were approved; with `every`, for all that passed. `again`
    repeats jobs that were measured elsewhere before. The rival of each candidate is the approved one before
    it.
    """
    jobs: list[Job] = []
    rival: Candidate | None = None
    seen: set[str] = set()
    for item in session.rounds:
        candidate = item.candidate
        if candidate is None or not _wanted(item, every=every):
            continue
        if candidate.digest not in seen and (again or not _is_timed(session, item)):
            jobs.append(
                Job(
                    session=session.name,
                    revision=f"r{item.number}",
                    problem=session.problem,
                    candidate=candidate,
                    rival=rival if rival and rival.digest != candidate.digest else None,
                    tier=tier,
                )
            )
        seen.add(candidate.digest)
        if item.approved:
            rival = candidate
    return tuple(jobs)


def _wanted(item: Round, *, every: bool) -> bool:
    return item.approved or (every and item.evaluation is not None and item.evaluation.passed)


def _is_timed(session: Session, item: Round) -> bool:
    found = session.measured(item)
    known = (item.evaluation, found.evaluation if found else None)
    refused = found is not None and not found.evaluation.passed
    return refused or any(one is not None and one.timing is not None for one in known)


def absorb(session: Session, results: Sequence[Result], now: str) -> ImportResult:
    """Import the results that belong to `session`, in any order and however many are missing.

    Each measurement is compared with the best one before it on the same device. Measurements of this file
    count in the order of their rounds.
    """
    known = {(item.job, item.device.name) for item in session.measurements}
    by_digest = {item.candidate.digest: item for item in reversed(session.rounds) if item.candidate}
    repeated, failed, refused = 0, [], []
    fitting: list[tuple[int, Result]] = []
    for result in results:
        label = f"{result.revision} of {result.session}"
        reason = _why_not(session, result, set(by_digest))
        if reason:
            refused.append(f"{label}: {reason}")
        elif result.evaluation is None or result.device is None:
            failed.append(
                f"{label}: {result.error or 'no evaluation and no reason'}; its job is still pending"
            )
        elif (result.job, result.device.name) in known:
            repeated += 1
        else:
            known.add((result.job, result.device.name))
            fitting.append((by_digest[result.candidate_digest].number, result))
    told = session
    for _, result in sorted(fitting, key=lambda pair: pair[0]):
        told = replace(told, measurements=(*told.measurements, _measurement(told, result, now)))
    return ImportResult(
        measurements=told.measurements[len(session.measurements) :],
        repeated=repeated,
        failed=tuple(failed),
        refused=tuple(refused),
    )


def _why_not(session: Session, result: Result, digests: set[str]) -> str:
    """Reason why a result does not belong to this session; empty when it does."""
    if result.problem_digest != session.problem.digest:
        return (
            f"it was evaluated against another problem (SHA-256 {result.problem_digest[:12]}…, "
            f"this session's is {session.problem.digest[:12]}…)"
        )
    found = result.evaluation
    if found is not None and not set(found.library) <= set(session.problem.library):
        return f"it passed {library_words(found.library)}, which this session's problem does not allow"
    if result.candidate_digest not in digests:
        return f"no round has its candidate (SHA-256 {result.candidate_digest[:12]}…)"
    if result.evaluation is not None and result.evaluation.candidate_digest not in {
        "",
        result.candidate_digest,
    }:
        return (
            f"it names candidate {result.candidate_digest[:12]}…, and its evaluation is of "
            f"{result.evaluation.candidate_digest[:12]}…"
        )
    return ""


def _measurement(session: Session, result: Result, now: str) -> Measurement:
    assert result.evaluation is not None
    assert result.device is not None
    before = _best_measured(session, result.device.name)
    comparison = None
    if result.evaluation.passed:
        comparison = compare(
            before.evaluation if before else None,
            result.evaluation,
            session.facts,
            against=before.candidate_digest if before else "",
        )
    return Measurement(
        job=result.job,
        candidate_digest=result.candidate_digest,
        evaluation=result.evaluation,
        device=result.device,
        comparison=comparison,
        measured_at=result.measured_at,
        absorbed_at=now,
        environment=result.environment,
    )


def _best_measured(session: Session, device: str) -> Measurement | None:
    best: Measurement | None = None
    for item in session.measurements:
        if item.device.name == device and item.comparison and item.comparison.relation.is_better:
            best = item
    return best
