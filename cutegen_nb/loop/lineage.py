"""Which revision the next round starts from, and which strategy it tries."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.core.round import Action, Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy


def parent_of_next(session: Session) -> Round | None:
    """The round whose candidate the next one works from: a person's choice, else the best approved one."""
    chosen = _branched_to(session)
    return chosen if chosen is not None else session.best


def _branched_to(session: Session) -> Round | None:
    if not session.rounds:
        return None
    decision = next((d for d in reversed(session.rounds[-1].decisions) if d.action is Action.BRANCH), None)
    return revision(session, decision.edited) if decision else None


def revision(session: Session, label: str) -> Round | None:
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


def next_strategy(session: Session, menu: Sequence[Strategy], parent: Round) -> Strategy | None:
    """The first strategy of the menu not yet tried on `parent`; None when all were.

    Strategies that were tried nowhere come before those that failed on an older revision, and one that
    the parent or an ancestor already carries out is not asked for again.
    """
    assert parent.candidate is not None
    here = parent.candidate.digest
    carried = _carried_out(session, parent)
    tried_here = {s.strategy.name for s in session.rounds if s.strategy and parent_digest(s) == here}
    left = [item for item in menu if item.name not in carried | tried_here]
    tried_anywhere = {item.strategy.name for item in session.rounds if item.strategy}
    fresh = [item for item in left if item.name not in tried_anywhere]
    return next(iter(fresh or left), None)


def _carried_out(session: Session, parent: Round) -> set[str]:
    """Names of the strategies on the way from the first kernel to `parent`."""
    by_digest = {item.candidate.digest: item for item in session.rounds if item.candidate}
    names: set[str] = set()
    seen: set[str] = set()
    item: Round | None = parent
    while item is not None and item.candidate and item.candidate.digest not in seen:
        seen.add(item.candidate.digest)
        if item.strategy:
            names.add(item.strategy.name)
        item = by_digest.get(parent_digest(item))
    return names
