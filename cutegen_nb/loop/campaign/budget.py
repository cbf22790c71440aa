"""Budgets over a campaign: amounts spent by its sessions, and what is left for the next one; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cutegen_nb.analysis.history.spending import (
    dollars_spent,
    gpu_seconds_spent,
    tokens_spent,
    wall_seconds_spent,
)
from cutegen_nb.core.search.campaign import CampaignBudget
from cutegen_nb.core.session import Budget, Session

_HOUR_S = 3600
"""Seconds from which minutes are written without decimals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Amounts that sessions have spent."""

    tokens: int = 0
    """Tokens of prompts and replies together."""
    dollars: float = 0.0
    """US dollars at the author's prices."""
    wall_s: float = 0.0
    """Wall time of the rounds in seconds."""
    gpu_s: float = 0.0
    """Seconds that evaluations held a GPU."""


def spending_of(session: Session) -> Spending:
    """Sum up the rounds of a session."""
    return Spending(
        tokens=tokens_spent(session),
        dollars=dollars_spent(session),
        wall_s=wall_seconds_spent(session),
        gpu_s=gpu_seconds_spent(session),
    )


def together(amounts: Iterable[Spending]) -> Spending:
    """Add amounts."""
    all_of = tuple(amounts)
    return Spending(
        tokens=sum(one.tokens for one in all_of),
        dollars=sum(one.dollars for one in all_of),
        wall_s=sum(one.wall_s for one in all_of),
        gpu_s=sum(one.gpu_s for one in all_of),
    )


def budget_left(each: Budget, total: CampaignBudget, others: Spending) -> Budget:
    """Return the limits of one problem: its own, and at most what the other sessions left of the total."""
    tokens = _least(each.tokens, total.tokens, others.tokens)
    return replace(
        each,
        tokens=None if tokens is None else int(tokens),
        dollars=_least(each.dollars, total.dollars, others.dollars),
        wall_s=_least(each.wall_s, total.wall_s, others.wall_s),
        gpu_s=_least(each.gpu_s, total.gpu_s, others.gpu_s),
    )


def total_spent(total: CampaignBudget, spent: Spending) -> str:
    """Sentence on the first exhausted total; empty while all have something left."""
    rules = (
        (total.wall_s, spent.wall_s, "--total-minutes", _minutes),
        (total.tokens, spent.tokens, "--total-tokens", "{:,} tokens".format),
        (total.dollars, spent.dollars, "--total-dollars", "${:,.2f}".format),
        (total.gpu_s, spent.gpu_s, "--total-gpu-minutes", _minutes),
    )
    return next(
        (
            f"the budget of {write(limit)} over the campaign is spent: {write(used)} were used; "
            f"a larger {option} goes on"
            for limit, used, option, write in rules
            if limit is not None and used >= limit
        ),
        "",
    )


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:,.3g} min" if seconds < _HOUR_S else f"{seconds / 60:,.0f} min"


def _least(own: float | None, total: float | None, others: float) -> float | None:
    if total is None:
        return own
    rest = total - others
    return rest if own is None else min(own, rest)
