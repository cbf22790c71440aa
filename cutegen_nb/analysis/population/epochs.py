"""Summary of the epochs of a population: members, best speed, duels and decisions in words; pure."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.analysis.figures.quantity import times
from cutegen_nb.analysis.history.summary import decision_word, revision, who
from cutegen_nb.analysis.population.members import member_round, speeds
from cutegen_nb.core.round import Action, Decision, Epoch
from cutegen_nb.core.search.population import Duel
from cutegen_nb.core.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochSummary:
    """Epoch of a population in words."""

    number: int
    """Number of the epoch, from 1."""
    members: tuple[str, ...]
    """Labels of the kernels that went on, fastest first."""
    speed: float | None
    """First kernel's time ÷ the time of its fastest member; None without members."""
    duels: tuple[str, ...]
    """Each comparison that selection asked for: ``r4 against r3: …``."""
    decisions: tuple[str, ...]
    """Each decision at its gate, with the decider and the person's words."""
    restarted: bool
    """True if only the fastest member, the pinned ones and the first kernel went on."""


def epoch_summaries(session: Session, draft: Epoch | None = None) -> tuple[EpochSummary, ...]:
    """Return a summary of each epoch, oldest first; `draft` is one that is not over yet."""
    epochs = (*session.epochs, draft) if draft else session.epochs
    by_digest = speeds(session, draft.duels if draft else ())
    return tuple(
        EpochSummary(
            number=epoch.number,
            members=tuple(_label(session, digest, epoch.number) for digest in epoch.members),
            speed=by_digest.get(epoch.champion),
            duels=tuple(_duel_words(session, duel, epoch.number) for duel in epoch.duels),
            decisions=tuple(decision_sentence(made) for made in epoch.decisions),
            restarted=epoch.restarted,
        )
        for epoch in epochs
    )


def epoch_line(epoch: EpochSummary) -> str:
    """Say who goes on after an epoch and how fast the best is, in a sentence."""
    verb = "go" if len(epoch.members) > 1 else "goes"
    text = f"Epoch {epoch.number}: {', '.join(epoch.members) or 'no kernel'} {verb} on"
    if epoch.speed is not None:
        text += f", the best at {times(epoch.speed)}"
    if epoch.restarted:
        text += "; no gain for some epochs: the next one starts anew"
    return f"{text}."


def decision_sentence(made: Decision) -> str:
    """Say who decided what at the gate of an epoch: ``ada pinned r3: “the only one with tiles”``."""
    what = decision_word(made)
    if made.action is Action.APPROVE:
        what = "approved the members"
    if made.action is Action.STOP:
        what = "stopped the session"
    if made.action is Action.REQUEST:
        what = "asked for the strategy"
    text = " ".join(filter(None, [who(made.by), what, made.edited]))
    return f"{text}: “{made.reason}”" if made.reason else text


def _duel_words(session: Session, duel: Duel, epoch: int) -> str:
    one, other = (_label(session, digest, epoch) for digest in (duel.challenger, duel.holder))
    return f"{one} against {other}: {duel.reason}"


def _label(session: Session, digest: str, epoch: int) -> str:
    item = member_round(session, digest, epoch)
    return revision(item) if item else digest[:12]
