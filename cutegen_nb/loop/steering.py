"""Strategy that a person's words name, which takes the place of the one that was due; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.stages import Step

_CLAUSE = re.compile(r"[.;:!?\n]|, but\b|\bbut\b")
"""Ends of a clause, up to which a negation holds."""
_NEGATION = re.compile(
    r"\b(not|no|never|without|avoid|skip|instead of|rather than|drop|undo|remove|except)\b|n't\b",
    re.IGNORECASE,
)
"""Words before a name by which a person asks for anything but that strategy."""


def steered(step: Step, words: str, menu: Sequence[Strategy]) -> Step:
    """Return the step with the strategy of `menu` that a person's words name last; unchanged without one.

    A first kernel has no strategy to replace. A request for numbers asks for nothing else, so that a strategy
    of another stage takes the round to its stage, and a strategy for numbers takes it to TUNE.
    """
    if step.parent is None or step.strategy is None:
        return step
    found = [place for strategy in menu if (place := _named(strategy, words))]
    if not found:
        return step
    strategy = max(found, key=lambda item: item[0])[1]
    if Stage.TUNE in {step.stage, strategy.stage}:
        step = replace(step, stage=strategy.stage)
    return replace(step, strategy=strategy, chosen_because="")


def _named(strategy: Strategy, words: str) -> tuple[int, Strategy] | None:
    """Position of the strategy's name in `words`, hyphens or spaces between its parts; None if absent."""
    name = r"[-_ ]".join(re.escape(part) for part in strategy.name.split("-"))
    for match in re.finditer(rf"(?<![\w-]){name}(?![\w-])", words, re.IGNORECASE):
        clause = _CLAUSE.split(words[: match.start()])[-1]
        if not _NEGATION.search(clause):
            return match.start(), strategy
    return None
