"""Budgets of a session: the first exhausted limit; pure."""

from __future__ import annotations

from collections.abc import Callable

from cutegen_nb.analysis.history.spending import (
    dollars_spent,
    gpu_seconds_spent,
    person_seconds_spent,
    rounds_spent,
    tokens_spent,
    wall_seconds_spent,
)
from cutegen_nb.core.session import Session

_MINUTES_FROM_S = 120
"""Seconds from which a limit is written in minutes."""


def budget_spent(session: Session) -> str:
    """Sentence on the first exhausted budget; empty while all have something left."""
    rounds = session.budget.rounds
    if rounds_spent(session) >= rounds:
        return f"the budget of {rounds} round{'' if rounds == 1 else 's'} is spent"
    return next((text for rule in _BUDGETS if (text := rule(session))), "")


def _span(seconds: float) -> str:
    """Format a duration as a person would write it: ``0.5 s``, ``95 s``, ``12.5 min``."""
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
"""Rules for the budgets besides rounds; each returns a sentence or an empty string."""
