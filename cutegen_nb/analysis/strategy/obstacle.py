"""Obstacle to a strategy: it is carried out already, or a condition that it needs does not hold."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.analysis.strategy.conditions import Circumstances, holds
from cutegen_nb.analysis.strategy.optimisations import in_force
from cutegen_nb.core.strategy import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Reason not to offer a strategy."""

    strategy: str
    """Name of the strategy."""
    done: bool
    """True if the kernel carries the strategy out already; False if it is impossible or cannot win."""
    reason: str
    """Figure that decides, in words: ``16 rows for 132 multiprocessors``."""


def obstacle(strategy: Strategy, here: Circumstances) -> Obstacle | None:
    """Return the first obstacle to a strategy; None if it may be tried. What nothing tells is no obstacle."""
    for optimisation in strategy.absent:
        answer = in_force(optimisation, here.traits)
        if answer and answer[0]:
            return Obstacle(strategy=strategy.name, done=True, reason=answer[1])
    for optimisation in strategy.excludes:
        answer = in_force(optimisation, here.traits)
        if answer and answer[0]:
            return Obstacle(strategy=strategy.name, done=False, reason=answer[1])
    for condition in strategy.requires:
        answer = holds(condition, here)
        if answer and not answer[0]:
            return Obstacle(strategy=strategy.name, done=False, reason=answer[1])
    for optimisation in strategy.present:
        answer = in_force(optimisation, here.traits)
        if answer and not answer[0]:
            return Obstacle(strategy=strategy.name, done=False, reason=answer[1])
    return None
