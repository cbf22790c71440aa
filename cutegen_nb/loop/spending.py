"""What a session has spent, and which budget that exhausts. Pure; each budget says its figures."""

from __future__ import annotations

from collections.abc import Callable

from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session

_MINUTES_FROM_S = 120


def rounds_spent(session: Session) -> int:
    """Rounds in which an author answered or a person wrote; one that no reply reached costs nothing."""
    return sum(1 for item in session.rounds if _counts(item))


def tokens_spent(session: Session) -> int:
    """Tokens asked and answered over all rounds, failed requests included."""
    used = [item.usage for item in session.rounds]
    return sum(usage.input_tokens + usage.output_tokens for usage in used)


def dollars_spent(session: Session) -> float:
    """US dollars of every request whose price was known when it was made."""
    return sum(item.usage.cost_usd or 0.0 for item in session.rounds)


def gpu_seconds_spent(session: Session) -> float:
    """Seconds in which evaluations held a GPU."""
    return sum(item.gpu_s for item in session.rounds)


def wall_seconds_spent(session: Session) -> float:
    """Seconds that the rounds took, people's time included; the time between two runs is not counted."""
    return sum(item.seconds for item in session.rounds)


def person_seconds_spent(session: Session) -> float:
    """Seconds that a person was waited for at gates."""
    return sum(
        decision.seconds
        for item in session.rounds
        for decision in item.decisions
        if decision.by.startswith("person:")
    )


def budget_spent(session: Session) -> str:
    """The first budget that is exhausted, in a sentence; empty while all have something left."""
    rounds = session.budget.rounds
    if rounds_spent(session) >= rounds:
        return f"the budget of {rounds} round{'' if rounds == 1 else 's'} is spent"
    return next((text for rule in _BUDGETS if (text := rule(session))), "")


def _counts(item: Round) -> bool:
    return any(attempt.reply or attempt.candidate or attempt.evaluation for attempt in item.attempts)


def _span(seconds: float) -> str:
    """``0.5 s``, ``95 s``, ``12.5 min``: as a person would set it."""
    return f"{seconds:.4g} s" if seconds < _MINUTES_FROM_S else f"{seconds / 60:.4g} min"


def _wall(session: Session) -> str:
    limit = session.budget.wall_s
    if limit is None or (spent := wall_seconds_spent(session)) < limit:
        return ""
    return f"the budget of {_span(limit)} is spent: the rounds took {_span(spent)}"


def _tokens(session: Session) -> str:
    limit = session.budget.tokens
    if limit is None or (spent := tokens_spent(session)) < limit:
        return ""
    return f"the budget of {limit:,} tokens is spent: {spent:,} were used"


def _dollars(session: Session) -> str:
    limit = session.budget.dollars
    if limit is None or (spent := dollars_spent(session)) < limit:
        return ""
    return f"the budget of ${limit:.2f} is spent: the requests cost ${spent:.4f}"


def _gpu(session: Session) -> str:
    limit = session.budget.gpu_s
    if limit is None or (spent := gpu_seconds_spent(session)) < limit:
        return ""
    return f"the budget of {_span(limit)} of GPU time is spent: evaluations held it for {_span(spent)}"


def _person(session: Session) -> str:
    limit = session.budget.person_s
    if limit is None or (spent := person_seconds_spent(session)) < limit:
        return ""
    return f"the budget of {_span(limit)} of a person's time is spent: the gates waited for {_span(spent)}"


_BUDGETS: tuple[Callable[[Session], str], ...] = (_wall, _tokens, _dollars, _gpu, _person)
