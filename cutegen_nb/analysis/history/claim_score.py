"""Score of one claim about a counter or a time, by direction and size.

Counts are those of the full size where both evaluations hold a sample of it, else those of the size that ran.
Without a GPU, times are estimates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import StrEnum

from cutegen_nb.analysis.figures.quantity import change, count, duration, figure, times
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.profile import Counters, ProfileSource
from cutegen_nb.core.round import PredictedChange
from cutegen_nb.core.search.comparison import NO_CLEAR_DIFFERENCE, Comparison, Relation
from cutegen_nb.core.strategy import Direction

LATENCY = "latency_ms"
"""Name by which a claim refers to the median latency in ms."""
SPEEDUP = "speedup"
"""Name by which a claim refers to the parent's latency ÷ the candidate's."""
_FIELDS = frozenset(item.name for item in fields(Counters)) | {"gmem_sectors", "gmem_bytes", "total_flops"}
"""Counters that a claim may name: fields and derived sums of `Counters`."""
_SAME_FRACTION = 0.005
"""Relative change up to which a counter did not move: the tail of one warp is no effect."""
UNCHANGED_FRACTION = 0.02
"""Relative change up to which a prediction of no change holds."""
SIZE_FACTOR = 2.0
"""Most that the predicted and the measured change may differ as a ratio, for a claim with a size to hold."""
SIZE_POINTS = 0.05
"""Difference of the two changes, as shares of the parent's value, up to which such a claim holds as well."""
_TIME_WENT = {
    Relation.FASTER: Direction.DOWN,
    Relation.ESTIMATED_FASTER: Direction.DOWN,
    Relation.SLOWER: Direction.UP,
    Relation.ESTIMATED_SLOWER: Direction.UP,
}
"""Direction in which the latency moved, by the relation of candidate and parent."""


class Outcome(StrEnum):
    """Result of a claim."""

    HELD = "held"
    """The direction is right, and so is the size where one was claimed."""
    SIZE_OFF = "direction right, size off"
    """The direction is right, the size outside the tolerance."""
    DID_NOT_HOLD = "did not hold"
    """It did not move, or in the other direction."""
    CANNOT_TELL = "cannot tell"
    """The difference of the times is within their noise or interval."""
    NO_DIRECTION = "no direction was claimed"
    """A counter was named without a direction."""
    NOT_MEASURED = "not measured"
    """One of the two values is missing."""
    NO_CHANGE = "no change"
    """The kernel is the one that it started from, so that there is nothing to score."""

    @property
    def words(self) -> str:
        """Result as a person reads it."""
        return NO_CLEAR_DIFFERENCE if self is Outcome.CANNOT_TELL else self.value


class Basis(StrEnum):
    """Size of the problem that the figures of a score are of."""

    FULL = "at full size"
    """Counted or timed at the problem's full size."""
    RAN = "at the size that ran"
    """Counted at the reduced size that the simulator ran."""
    ESTIMATED = "estimated at full size"
    """Times computed from counts at full size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Values of parent and candidate that a claim is compared with."""

    before: float
    """Value for the parent; times in ms."""
    after: float
    """Value for the candidate; times in ms."""
    change_fraction: float
    """Change relative to the parent's value; of the speedup, its difference from 1. Infinite from 0."""
    direction: Direction | None
    """Direction in which it moved; None where it did not, or where two times cannot be told apart."""
    basis: Basis
    """Size that the values are of."""
    is_decided: bool = True
    """False for two times that cannot be told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Claim about one counter or time, with its measurement."""

    claim: PredictedChange
    """The claim; its counter may be `SPEEDUP` as well."""
    measured: Measured | None
    """Values of parent and candidate; None if one was not measured."""
    outcome: Outcome
    """Result of the claim."""

    @property
    def text(self) -> str:
        """Format claim, measurement, its size and the result in one line."""
        came = f"{self.came}, " if self.measured else ""
        return f"{self.said}: {came}{self.outcome.words}{self._off}"

    @property
    def said(self) -> str:
        """The claim in words: ``gmem_load_sectors`` down by 75 %."""
        return _said(self.claim)

    @property
    def came(self) -> str:
        """Measured values, their change and their size; empty where one was not measured."""
        found = self.measured
        if found is None:
            return ""
        is_time = self.claim.counter in {LATENCY, SPEEDUP}
        write = _milliseconds if is_time else count
        figures = f"{write(found.before)} → {write(found.after)}"
        where = f", {found.basis}" if found.basis is Basis.ESTIMATED else f" {found.basis}"
        if self.outcome is Outcome.SIZE_OFF:  # the sizes are told with the result
            return f"{figures}{where}"
        moved = times(1 + found.change_fraction) if self._is_speedup else change(found.before, found.after)
        return f"{figures} ({moved}){where}"

    @property
    def _off(self) -> str:
        if self.outcome is not Outcome.SIZE_OFF or self.measured is None:
            return ""
        return f" ({self._sizes(self.measured)})"

    def _sizes(self, found: Measured) -> str:
        """Format predicted and measured size: ``predicted +40 %, measured +416.7 %``."""
        got = "estimated" if found.basis is Basis.ESTIMATED else "measured"
        if self._is_speedup:
            return f"predicted {times(_factor(self.claim))}, {got} {times(1 + found.change_fraction)}"
        sign = "−" if self.claim.direction is Direction.DOWN else "+"
        size = figure(100 * (self.claim.change_fraction or 0.0))
        return f"predicted {sign}{size} %, {got} {change(found.before, found.after)}"

    @property
    def _is_speedup(self) -> bool:
        return self.claim.counter == SPEEDUP


def score(
    claim: PredictedChange,
    before: Evaluation | None,
    after: Evaluation | None,
    comparison: Comparison | None = None,
) -> Score:
    """Score a claim on two evaluations.

    Two times are told apart by `comparison` alone, because two medians differ by chance as well. Without a
    GPU it holds the estimates.
    """
    if claim.counter in {LATENCY, SPEEDUP}:
        found = _times(claim.counter, before, after, comparison)
    else:
        found = _counts(claim.counter, before, after)
    return Score(claim=claim, measured=found, outcome=_outcome(claim, found))


def _said(claim: PredictedChange) -> str:
    if claim.counter == SPEEDUP:
        return f"`{SPEEDUP}` {times(_factor(claim))}"
    if claim.change_fraction == 0:
        return f"`{claim.counter}` unchanged"
    way = claim.direction.value if claim.direction else "should move"
    by = f" by {figure(100 * claim.change_fraction)} %" if claim.change_fraction is not None else ""
    return f"`{claim.counter}` {way}{by}"


def _factor(claim: PredictedChange) -> float:
    gain = claim.change_fraction or 0.0
    return 1 - gain if claim.direction is Direction.DOWN else 1 + gain


def _milliseconds(value: float) -> str:
    return duration(value / 1e3)


def _counts(counter: str, before: Evaluation | None, after: Evaluation | None) -> Measured | None:
    """Return a counter of both at full size where both were sampled at it, else of their profiles."""
    if before is None or after is None or counter not in _FIELDS:
        return None
    pair = full_counters(before), full_counters(after)
    basis = Basis.FULL
    if pair[0] is None or pair[1] is None:
        if before.profile is None or after.profile is None:
            return None
        # Counts of the simulator and of Nsight Compute are of two sizes.
        if before.profile.source is not after.profile.source:
            return None
        pair = before.profile.counters, after.profile.counters
        basis = Basis.RAN if after.profile.source is ProfileSource.SIMULATED else Basis.FULL
    old, new = getattr(pair[0], counter), getattr(pair[1], counter)
    if not isinstance(old, int | float) or not isinstance(new, int | float):
        return None
    moved = abs(new - old) > _SAME_FRACTION * max(abs(old), abs(new))
    return Measured(
        before=float(old),
        after=float(new),
        change_fraction=(new - old) / old if old else (math.inf if new else 0.0),
        direction=(Direction.DOWN if new < old else Direction.UP) if moved else None,
        basis=basis,
    )


def full_counters(evaluation: Evaluation) -> Counters | None:
    """Return the counts of a call at full size; None where none were sampled."""
    if evaluation.full_size is None or not evaluation.full_size.launches:
        return None
    total = Counters()
    for launch in evaluation.full_size.launches:
        total += launch.profile.counters
    return total


def _times(
    counter: str, before: Evaluation | None, after: Evaluation | None, comparison: Comparison | None
) -> Measured | None:
    """Return the times of both: measured where both were timed, else the estimates of the comparison."""
    if before is None or after is None or comparison is None:
        return None
    if before.timing and after.timing:
        old, new, basis = before.timing.median_ms, after.timing.median_ms, Basis.FULL
        # Paired calls are more exact than two medians.
        ratio = comparison.speedup or (old / new if new else 0.0)
    elif comparison.estimated_s and comparison.speedup:
        ratio, basis = comparison.speedup, Basis.ESTIMATED
        new = 1e3 * comparison.estimated_s
        old = new * ratio
    else:
        return None
    if old <= 0 or new <= 0:
        return None
    went = _TIME_WENT.get(comparison.relation)
    if counter == SPEEDUP and went is not None:
        went = Direction.UP if went is Direction.DOWN else Direction.DOWN
    return Measured(
        before=old,
        after=new,
        change_fraction=ratio - 1 if counter == SPEEDUP else new / old - 1,
        direction=went,
        basis=basis,
        is_decided=went is not None,
    )


def _outcome(claim: PredictedChange, found: Measured | None) -> Outcome:
    if found is None:
        return Outcome.NOT_MEASURED
    if claim.change_fraction == 0:
        if abs(found.change_fraction) <= UNCHANGED_FRACTION:
            return Outcome.HELD
        return Outcome.DID_NOT_HOLD if found.is_decided else Outcome.CANNOT_TELL
    if claim.direction is None:
        return Outcome.NO_DIRECTION
    if not found.is_decided:
        return Outcome.CANNOT_TELL
    if found.direction is not claim.direction:
        return Outcome.DID_NOT_HOLD
    return Outcome.HELD if _size_holds(claim.change_fraction, found) else Outcome.SIZE_OFF


def _size_holds(predicted: float | None, found: Measured) -> bool:
    """Return whether a change has the predicted size; True where none was predicted, or where none exists."""
    size = abs(found.change_fraction)
    if predicted is None or math.isinf(size):
        return True
    is_near = abs(size - predicted) <= SIZE_POINTS
    return is_near or predicted / SIZE_FACTOR <= size <= predicted * SIZE_FACTOR
