"""Lineage of revisions: the parent of the next round, and the strategies tried on the way to it."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.history.spending import is_counted
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Action, EndedStrategy, Round, StrategyEnd
from cutegen_nb.core.session import Session


def parent_of_next(session: Session) -> Round | None:
    """Return the round that the next one starts from: a person's choice, else the best approved one."""
    chosen = _branched_to(session)
    return chosen if chosen is not None else session.best


def _branched_to(session: Session) -> Round | None:
    if not session.rounds:
        return None
    decision = next((d for d in reversed(session.rounds[-1].decisions) if d.action is Action.BRANCH), None)
    return session.passing(decision.edited) if decision else None


def parent_digest(item: Round) -> str:
    """Digest of the candidate that a round started from; empty without a parent."""
    parent = item.attempts[0].prompt.parent if item.attempts else None
    return parent.digest if parent else ""


def parent_evaluation(session: Session, parent: Round) -> Evaluation | None:
    """Evaluation of `parent`, with the counters that a later round profiled."""
    evaluation, candidate = parent.evaluation, parent.candidate
    if evaluation is None or candidate is None or evaluation.profile is not None:
        return evaluation
    taken = (r.parent_profile for r in session.rounds if parent_digest(r) == candidate.digest)
    profile = next((item for item in taken if item is not None), None)
    return replace(evaluation, profile=profile) if profile else evaluation


def since_branch(session: Session) -> tuple[Round, ...]:
    """Rounds after a person last branched to another revision; all rounds without a branch."""
    for index in range(len(session.rounds) - 1, -1, -1):
        if any(decision.action is Action.BRANCH for decision in session.rounds[index].decisions):
            return session.rounds[index + 1 :]
    return session.rounds


def tried_on(session: Session, parent: Round) -> set[str]:
    """Names of the strategies applied in `parent` or an ancestor, tried on `parent`, or ended by the author.

    A strategy that a revision carries out already is over for its descendants too. One that cannot be applied
    to it may be possible on another revision, and one whose request no author answered was not tried.
    """
    assert parent.candidate is not None
    here = parent.candidate.digest
    asked = (item for item in session.rounds if parent_digest(item) == here and is_counted(item))
    tried = {item.strategy.name for item in asked if item.strategy}
    line = line_of(session, parent)
    applied = {
        name for item in line if item.strategy for name in (item.strategy.name, *item.strategy.parents)
    }
    return tried | applied | {item.strategy.name for item in ended_on(session, parent)}


def ended_on(session: Session, parent: Round) -> tuple[EndedStrategy, ...]:
    """Strategies that the author ended on `parent`, and those found done on an ancestor, oldest first."""
    here = parent.candidate.digest if parent.candidate else ""
    digests = {item.candidate.digest for item in line_of(session, parent) if item.candidate}
    return tuple(
        ended
        for item in session.rounds
        for ended in item.ended
        if parent_digest(item) == here
        or (parent_digest(item) in digests and ended.end is StrategyEnd.ALREADY_DONE)
    )


def line_of(session: Session, parent: Round) -> list[Round]:
    """Rounds from the first kernel to `parent`, newest first."""
    line: list[Round] = []
    wanted = parent.candidate.digest if parent.candidate else ""
    # Newest first: a parent always stands before its child.
    for item in reversed(session.rounds):
        if wanted and item.candidate and item.candidate.digest == wanted:
            line.append(item)
            wanted = parent_digest(item)
    return line
