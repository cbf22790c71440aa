"""Sensitivity of an estimate: the time that is saved if the terms that a strategy lowers vanished."""

from __future__ import annotations

from cutegen_nb.core.estimate import Estimate, Term
from cutegen_nb.core.strategy import Bound, Direction, Strategy

_LOWERS: dict[str, tuple[str, ...]] = {
    "gmem_load_sectors": ("dram", "l2", "l1"),
    "gmem_store_sectors": ("dram", "l2", "l1"),
    "gmem_sectors": ("dram", "l2", "l1"),
    "gmem_atomic_sectors": ("l2", "atomic"),
    "gmem_requests": ("l1", "issue", "latency"),
    "warp_instructions": ("issue", "pipe"),
    "smem_wavefronts": ("shared",),
    "local_load_bytes": ("local", "l1", "issue"),
    "barriers": ("barrier", "latency"),
    "branches": ("issue",),
    "divergent_branches": ("issue",),
}
"""Words in the names of the terms that a fall of a counter lowers."""
_BY_BOUND: dict[Bound, tuple[str, ...]] = {
    Bound.MEMORY: ("dram", "l2"),
    Bound.COMPUTE: ("pipe", "issue"),
    Bound.LATENCY: ("latency", "tail", "wave", "barrier", "launch", "idle"),
}
"""Words in the names of the terms that belong to a bound, for a strategy that promises less time alone."""
_NEGLIGIBLE = 0.1
"""Share of the estimated time below which lowering a term is not worth a round."""


def lowered_terms(strategy: Strategy, estimate: Estimate) -> tuple[Term, ...]:
    """Return the terms that a strategy lowers, by its effects, and by its bounds where it promises time.

    Less time at unchanged sectors is no less traffic, so the bound MEMORY counts only without any effect.
    """
    down = [item.counter for item in strategy.effects if item.direction is Direction.DOWN]
    words = {word for counter in down for word in _LOWERS.get(counter, ())}
    bounds: tuple[Bound, ...] = () if down else strategy.bounds
    if "latency_ms" in down:
        # Without a bound the promise of less time is one of less waiting.
        bounds = tuple(bound for bound in strategy.bounds if bound is not Bound.MEMORY) or (Bound.LATENCY,)
    words |= {word for bound in bounds for word in _BY_BOUND[bound]}
    return tuple(term for term in estimate.terms if any(word in term.name.lower() for word in words))


def saved_seconds(strategy: Strategy, estimate: Estimate) -> float:
    """Return the time that is saved if every term that the strategy lowers vanished, in seconds.

    Terms overlap, so the time left is that of the largest other term: a strategy against a term that hides
    behind another one saves nothing.
    """
    lowered = lowered_terms(strategy, estimate)
    largest = max((term.seconds for term in estimate.terms), default=0.0)
    left = max((term.seconds for term in estimate.terms if term not in lowered), default=0.0)
    return max(0.0, largest - left) if lowered else 0.0


def is_hopeful(strategy: Strategy, estimate: Estimate) -> bool:
    """Return whether a strategy lowers a term of at least a tenth of the time.

    A strategy whose effects match no term is kept, because the estimate says nothing of it.
    """
    lowered = lowered_terms(strategy, estimate)
    return not lowered or max(term.seconds for term in lowered) >= _NEGLIGIBLE * estimate.seconds


def order(strategy: Strategy, estimate: Estimate) -> tuple[float, float]:
    """Return the sort key of a strategy: most time saved first, then the most time in what it lowers."""
    lowered = lowered_terms(strategy, estimate)
    return -saved_seconds(strategy, estimate), -sum(term.seconds for term in lowered)
