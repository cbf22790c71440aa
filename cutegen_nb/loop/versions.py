"""Earlier kernels with the source of a candidate: versions of its round, and revisions of its session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Evaluation, Judged
from cutegen_nb.core.round import Attempt, Prompt
from cutegen_nb.core.search.comparison import same_kernel
from cutegen_nb.core.session import Session

_STANDS = "its verdict stands."
"""End of the sentence on a candidate with the source of an earlier one."""


def earlier_version(attempts: Sequence[Attempt], source: str) -> Attempt | None:
    """Return an earlier version of this round's kernel as an attempt of its own; None for a new source.

    It keeps its author and its evaluation: going back to a version needs no second run.
    """
    found = next((a for a in attempts if a.evaluation and a.candidate and a.candidate.source == source), None)
    if found is None or found.candidate is None:
        return None
    prompt = Prompt(
        system="",
        user="",
        digest="",
        purpose="restore",
        strategy=found.candidate.strategy,
        parent=found.prompt.parent,
    )
    return Attempt(
        purpose="restore", prompt=prompt, reply=None, candidate=found.candidate, evaluation=found.evaluation
    )


def judged_before(session: Session, attempts: Sequence[Attempt], candidate: Candidate) -> Evaluation | None:
    """Return the evaluation of an earlier candidate with the same source, named in its summary; else None.

    `attempts` are those of the round before it. An outcome without a verdict is not taken over.
    """
    there = next((one for one in reversed(attempts) if _is_judged(one, candidate)), None)
    item = session.round_of(candidate.digest)
    found = there.evaluation if there else item.evaluation if item else None
    if found is None or not isinstance(found.outcome, Judged):
        return None
    newest = next((one for one in reversed(attempts) if one.candidate and one.evaluation), None)
    version = "the version before" if there is newest else "an earlier version"
    name = version if there else f"r{item.number}" if item else ""
    said = f"{same_kernel(name).capitalize()}: {stands(candidate)}"
    _, marker, first = found.summary.partition(f"{_STANDS} ")  # say it once if the summary says it already
    summary = f"{said} {first if marker else found.summary}"
    return replace(found, summary=summary, duration_s=0.0, stage_seconds=())


def same_as(session: Session, candidate: Candidate) -> str:
    """Return the revision that has the same source as a candidate, such as ``r3``; empty for none.

    A revision that was better and still rejected does not count: the candidate may take its place.
    """
    item = session.round_of(candidate.digest)
    if item is None or item.comparison is None:
        return ""
    return f"r{item.number}" if item.approved or not item.comparison.relation.is_better else ""


def stands(candidate: Candidate) -> str:
    """Return the sentence on a candidate with the source of an earlier one."""
    is_parent = candidate.digest in candidate.parents
    return f"nothing was changed, and {_STANDS}" if is_parent else _STANDS


def _is_judged(attempt: Attempt, candidate: Candidate) -> bool:
    made, found = attempt.candidate, attempt.evaluation
    return bool(made and found and made.digest == candidate.digest and isinstance(found.outcome, Judged))
