"""Text for tokens and cost of an author's replies."""

from __future__ import annotations

from cutegen_nb.analysis.figures.quantity import count
from cutegen_nb.core.round import Attempt, Usage


def usage_words(usage: Usage) -> str:
    """Format tokens and cost: ``1,200 tokens (600 cached, 50 reasoning), $0.0014``; empty without tokens."""
    tokens = usage.input_tokens + usage.output_tokens
    if not tokens:
        return ""
    parts = [
        f"{count(usage.cached_tokens)} cached" if usage.cached_tokens else "",
        f"{count(usage.reasoning_tokens)} reasoning" if usage.reasoning_tokens else "",
        "partly a guess: the server did not count them" if usage.estimated else "",
    ]
    more = ", ".join(part for part in parts if part)
    cost = "" if usage.cost_usd is None else f", {dollars(usage.cost_usd)}"
    return f"{count(tokens)} tokens{f' ({more})' if more else ''}{cost}"


def dollars(amount: float) -> str:
    """Format US dollars: ``$12.30``; below one dollar two significant figures: ``$0.50``, ``$0.0014``."""
    if amount >= 1 or amount == 0:
        return f"${amount:,.2f}"
    whole, _, cents = f"{float(f'{amount:.2g}'):.6f}".rstrip("0").partition(".")
    return f"${whole}.{cents.ljust(2, '0')}"


def notes_of(attempts: tuple[Attempt, ...]) -> tuple[str, ...]:
    """Return the notes on a round's replies, a sentence each.

    Repeated requests, settings a server refused.
    """
    return tuple(note for attempt in attempts if attempt.reply for note in attempt.reply.notes)
