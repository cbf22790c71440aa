"""Comparison of two estimates of one problem: the ratio of their times, with its own interval."""

from __future__ import annotations

from cutegen_nb.analysis.estimate.interval import interval, ratio_deviation
from cutegen_nb.analysis.figures.quantity import duration, times
from cutegen_nb.core.estimate import Estimate
from cutegen_nb.core.search.comparison import Relation

LEAST_DIFFERENCE = 0.01
"""Least relative difference that counts; a kernel timed against itself differs by as much."""


def compare_estimates(best: Estimate, candidate: Estimate) -> tuple[Relation, str]:
    """Return the relation of a candidate to the best before it, and the figures with any restriction as text.

    Errors of two kernels of one problem are alike, so the interval of the ratio is narrower than the quotient
    of the two intervals.
    """
    ratio = best.seconds / candidate.seconds
    low, high = interval(ratio, ratio_deviation(best, candidate))
    bound = best.bound if best.bound == candidate.bound else f"{best.bound} → {candidate.bound}"
    figures = (
        f"estimated {times(ratio)} the speed of the best before it, {_rounded(low)} to {_rounded(high)}, on "
        f"{candidate.target}: {duration(best.seconds)} → {duration(candidate.seconds)}, bound by "
        f"{bound}"
    )
    # A restriction that both share is told once.
    notes = "".join(f" {note}" for note in dict.fromkeys((best.note, candidate.note)) if note)
    if low > 1 and ratio >= 1 + LEAST_DIFFERENCE:
        return Relation.ESTIMATED_FASTER, f"{figures}.{notes}"
    if high < 1 and ratio <= 1 / (1 + LEAST_DIFFERENCE):
        return Relation.ESTIMATED_SLOWER, f"{figures}.{notes}"
    return Relation.CANNOT_TELL, f"{figures}; the interval holds 1.{notes}"


def _rounded(value: float) -> str:
    """Format an end of the interval with two digits: ``0.9``, ``26``, ``140``."""
    return f"{float(f'{value:.2g}'):,.10g}"  # ``.2g`` alone writes 140 as 1.4e+02
