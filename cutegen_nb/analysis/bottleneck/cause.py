"""Likely causes of a kernel's limit, with the counter readings behind them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterReading:
    """Counter reading that supports a cause."""

    name: str
    """Name of the counter or ratio in the profile."""
    value: str
    """Value, written with its unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One likely cause of a kernel's limit."""

    name: str
    """``launch-bound`` · ``below-roof`` · ``too-few-ctas`` · ``tail-effect`` · ``spills`` ·
    ``serialised-wgmma`` · ``unpipelined-loads`` · ``occupancy`` · ``uncoalesced`` ·
    ``repeated-requests`` · ``extra-traffic`` · ``bank-conflicts`` · ``shared-reuse`` · ``divergence`` ·
    ``instruction-overhead``; from hardware also ``memory-latency`` · ``narrow-accesses``."""
    statement: str
    """Observation, in a sentence."""
    readings: tuple[CounterReading, ...]
    """Counter readings that support the cause."""
    fraction: float
    """Wasted work as a share of the largest demand; for a cause read from a time or a launch, the wasted
    share of that."""
    refuted_by: str
    """Observation that would show the cause to be wrong."""
    unit: str = ""
    """Unit whose work is wasted, as in a demand; empty for a cause read from a time or a launch."""
    line: int = 0
    """Source line that contributes most, from 1; 0 where lines are not known."""
    whole_launch: bool = False
    """True if the cause slows every unit at once; where it is grave, it precedes all causes of single
    units."""
    strategies: tuple[str, ...] = ()
    """Names of strategies that answer the cause, the likeliest first."""
