"""Which revision the next round starts from, and what was tried on the way to it."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Action, Round
from cutegen_nb.core.session import Session


def parent_of_next(session: Session) -> Round | None:
    """The round whose candidate the next one works from: a person's choice, else the best approved one."""
    chosen = _branched_to(session)
    return chosen if chosen is not None else session.best


def _branched_to(session: Session) -> Round | None:
    if not session.rounds:
        return None
    decision = next((d for d in reversed(session.rounds[-1].decisions) if d.action is Action.BRANCH), None)
    return passing(session, decision.edited) if decision else None


def passing(session: Session, label: str) -> Round | None:
    """The round called `label` (``r3`` or ``3``) if its candidate passed or was overruled, else None."""
    number = label.strip().removeprefix("r")
    found = next((item for item in session.rounds if str(item.number) == number), None)
    if found is None or found.evaluation is None:
        return None
    return found if found.evaluation.passed or found.approved else None


def parent_digest(item: Round) -> str:
    """Digest of the candidate a round started from; empty where it started from nothing."""
    parent = item.attempts[0].prompt.parent if item.attempts else None
    return parent.digest if parent else ""


def parent_evaluation(session: Session, parent: Round) -> Evaluation | None:
    """What was found of `parent`, with the counters that a later round took of it."""
    evaluation, candidate = parent.evaluation, parent.candidate
    if evaluation is None or candidate is None or evaluation.profile is not None:
        return evaluation
    taken = (r.parent_profile for r in session.rounds if parent_digest(r) == candidate.digest)
    profile = next((item for item in taken if item is not None), None)
    return replace(evaluation, profile=profile) if profile else evaluation


def since_branch(session: Session) -> tuple[Round, ...]:
    """The rounds after a person last chose another revision to go on from; all where nobody did."""
    for index in range(len(session.rounds) - 1, -1, -1):
        if any(decision.action is Action.BRANCH for decision in session.rounds[index].decisions):
            return session.rounds[index + 1 :]
    return session.rounds


def tried_on(session: Session, parent: Round) -> set[str]:
    """Names of the strategies that `parent` or an ancestor carries out, or that were tried on `parent`."""
    assert parent.candidate is not None
    here = parent.candidate.digest
    tried = {item.strategy.name for item in session.rounds if item.strategy and parent_digest(item) == here}
    return tried | _carried_out(session, parent)


def _carried_out(session: Session, parent: Round) -> set[str]:
    """Names of the strategies on the way from the first kernel to `parent`."""
    names: set[str] = set()
    wanted = parent.candidate.digest if parent.candidate else ""
    # Backwards: a candidate is made from one that was there before it.
    for item in reversed(session.rounds):
        if wanted and item.candidate and item.candidate.digest == wanted:
            names |= {item.strategy.name} if item.strategy else set()
            wanted = parent_digest(item)
    return names
