"""Replies of the offline author in words: labelled lines, and a strategy restated."""

from __future__ import annotations

from collections.abc import Mapping

from cutegen_nb.core.errors import Declined
from cutegen_nb.core.strategy import Strategy


def restated(strategy: Strategy | None) -> str:
    """Restate a strategy as done: the templates do what its statement says. Raises Declined without one."""
    if strategy is None:
        raise Declined("the request names no strategy to restate")
    carries = ", ".join(item.value for item in strategy.absent)
    return labelled({"Done": strategy.statement, "Carries": carries, "Not done": ""})


def labelled(lines: Mapping[str, str]) -> str:
    """Format a reply in words, a line for each label; an empty value is ``none``."""
    return "".join(f"{label}: {' '.join(value.split()) or 'none'}\n" for label, value in lines.items())
