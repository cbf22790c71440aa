"""Rounds, tokens, dollars and seconds that a session has spent."""

from __future__ import annotations

from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session


def rounds_spent(session: Session) -> int:
    """Rounds with a reply, a candidate or an evaluation. A round that has none of them is not counted."""
    return sum(1 for item in session.rounds if is_counted(item))


def tokens_spent(session: Session) -> int:
    """Tokens of prompts and replies over all rounds."""
    used = [item.usage for item in session.rounds]
    return sum(usage.input_tokens + usage.output_tokens for usage in used)


def dollars_spent(session: Session) -> float:
    """US dollars of all requests whose price was known when they were made."""
    return sum(item.usage.cost_usd or 0.0 for item in session.rounds)


def gpu_seconds_spent(session: Session) -> float:
    """Seconds in which evaluations held a GPU, the duels of a population included."""
    duels = sum(duel.gpu_s for epoch in session.epochs for duel in epoch.duels)
    return sum(item.gpu_s for item in session.rounds) + duels


def wall_seconds_spent(session: Session) -> float:
    """Wall time of the rounds in seconds, people's time included; time between two runs is not counted."""
    return sum(item.seconds for item in session.rounds)


def person_seconds_spent(session: Session) -> float:
    """Seconds of waiting for a person at the gates."""
    in_rounds = [decision for item in session.rounds for decision in item.decisions]
    in_epochs = [decision for epoch in session.epochs for decision in epoch.decisions]
    return sum(item.seconds for item in (*in_rounds, *in_epochs) if item.by.startswith("person:"))


def is_counted(item: Round) -> bool:
    """Return whether the round has a reply, a candidate or an evaluation: an author that failed has none."""
    return any(attempt.reply or attempt.candidate or attempt.evaluation for attempt in item.attempts)
