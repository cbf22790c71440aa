"""A likely reason for a kernel's limit, with the figures that say so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One figure a cause rests on."""

    name: str
    """Counter or ratio, as the profile names it."""
    value: str
    """Written with its unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One likely reason for the limit."""

    name: str
    """``launch-bound`` · ``below-roof`` · ``too-few-ctas`` · ``tail-effect`` · ``spills`` ·
    ``unpipelined-loads`` · ``occupancy`` · ``uncoalesced`` · ``repeated-requests`` · ``extra-traffic`` ·
    ``bank-conflicts`` · ``shared-reuse`` · ``divergence`` · ``instruction-overhead``; from hardware
    also ``memory-latency`` · ``narrow-accesses``."""
    statement: str
    """What is seen, in a sentence."""
    readings: tuple[Reading, ...]
    """The counters that say so."""
    fraction: float
    """Work it wastes, as a share of the largest demand."""
    refuted_by: str
    """What would show that this is not the cause."""
    unit: str = ""
    """The unit whose work it wastes, as in a demand; empty for a cause read from a time or a launch."""
    line: int = 0
    """Line of Python that contributes most, from 1; 0 where lines are not known."""
    whole_launch: bool = False
    """Whether it slows every unit at once: nothing else counts before it is cured."""
    strategies: tuple[str, ...] = ()
    """Names of the strategies that answer it, the likeliest first."""
