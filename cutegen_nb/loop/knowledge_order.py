"""Order of strategies that the knowledge base suggests; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_nb.analysis.bottleneck.diagnose import diagnose
from cutegen_nb.analysis.knowledge.gains import ExpectedGain, expected_gain
from cutegen_nb.analysis.knowledge.likeness import timed_architecture
from cutegen_nb.analysis.knowledge.record_words import gain_words
from cutegen_nb.analysis.problem.problem_key import problem_key
from cutegen_nb.core.round import Round
from cutegen_nb.core.search.knowledge import Recall, StrategyRecord
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Condition, Strategy
from cutegen_nb.loop.lineage import parent_evaluation

_FIRST = {
    Condition.SHORTCUT: "it removes steps of the reference, and the other strategies work on what remains",
    Condition.SERIALISED_WGMMA: "in the kernel's machine code each wgmma waits for the one before "
    "it, which this strategy corrects",
}
"""Conditions of strategies that come before those that records prefer, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Strategy to try, and whether records of like problems changed its place in the order."""

    strategy: Strategy
    """The strategy."""
    because: str
    """Sentence on what decided, a record or a condition; empty where neither did."""
    is_last: bool = False
    """True if the records put it last."""


def earlier_records(session: Session, recall: Recall) -> tuple[StrategyRecord, ...]:
    """Return the records of like problems, without those of this session: its own rounds tell of these."""
    own = (session.name, session.created_at)
    return tuple(
        item
        for item in recall(session.facts, session.device)
        if (item.session, item.session_at) != own or item.problem_digest != session.problem.digest
    )


def chosen(
    offered: Sequence[Strategy], records: Sequence[StrategyRecord], session: Session, parent: Round
) -> Choice | None:
    """Choose the strategy to try next, the first of `ordered`; None where none is offered.

    `Choice.because` says why the strategy was preferred to the first of `offered`; empty if it is the first.
    """
    found = ordered(offered, records, session, parent)
    if not found:
        return None
    first, passed_over = found[0], next(item for item in found if item.strategy is offered[0])
    if first is passed_over:
        return Choice(strategy=first.strategy, because="")
    reason = _reason(first.strategy)
    if reason and not first.is_last:
        return Choice(strategy=first.strategy, because=f"{first.strategy.name} comes first: {reason}")
    won = bool(first.because) and not first.is_last
    return first if won else Choice(strategy=first.strategy, because=passed_over.because)


def ordered(
    offered: Sequence[Strategy], records: Sequence[StrategyRecord], session: Session, parent: Round
) -> tuple[Choice, ...]:
    """Order strategies: one that won on like problems first, one that lost there last.

    A strategy for an identity of the graph, or for a fault that the machine code shows, comes before all,
    unless it lost. Among strategies without a record, and without records at all, the order stays. It also
    stays for strategies that name no preconditions, an author's ladder: its steps build on one another.
    """
    movable = [item for item in offered if item.absent or item.present or item.requires]
    gains = _gains(movable, records, session, parent) if movable and records else {}
    found = sorted(offered, key=lambda item: _place(item, gains.get(item.identity)))
    return tuple(_choice(item, gains.get(item.identity)) for item in found)


def _reason(strategy: Strategy) -> str:
    """Return the reason for a strategy to come before all; empty without one."""
    return next((reason for condition, reason in _FIRST.items() if condition in strategy.requires), "")


def _choice(strategy: Strategy, found: ExpectedGain | None) -> Choice:
    if found is None or not (found.wins or found.loses):
        return Choice(strategy=strategy, because="")
    said = "won" if found.wins else "comes last, because it lost"
    because = f"{strategy.name} {said} on like problems: {gain_words(found, strategy)}"
    return Choice(strategy=strategy, because=because, is_last=found.loses)


def _gains(
    offered: Sequence[Strategy], records: Sequence[StrategyRecord], session: Session, parent: Round
) -> dict[str, ExpectedGain]:
    key, architecture = problem_key(session.facts), timed_architecture(session.device)
    bound = diagnose(session.facts, parent_evaluation(session, parent), session.device).bound
    found = ((item, expected_gain(item, records, key, architecture, bound)) for item in offered)
    return {item.identity: gain for item, gain in found if gain is not None}


def _place(strategy: Strategy, found: ExpectedGain | None) -> tuple[int, float]:
    place, gain = _rank(found)
    return (-1, gain) if _reason(strategy) and not (found and found.loses) else (place, gain)


def _rank(found: ExpectedGain | None) -> tuple[int, float]:
    if found is None or not (found.wins or found.loses):
        return 1, 0.0
    return (0 if found.wins else 2), -found.log_speedup
