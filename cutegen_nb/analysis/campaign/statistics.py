"""Statistics of ratios over problems: means with intervals, shares, the sign test."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from cutegen_nb.analysis.figures.bootstrap import NORMAL, widening

RESAMPLES = 2000
"""Bootstrap resamples; the ends of a 95 % interval then stand on 50 resamples each."""
_SEED = 0
"""Seed of the bootstrap: the same ratios always give the same interval."""


def geometric_mean(ratios: Sequence[float]) -> float | None:
    """Return exp of the mean logarithm; None for no ratio. The ratios are above 0."""
    return math.exp(math.fsum(math.log(one) for one in ratios) / len(ratios)) if ratios else None


def geometric_interval(ratios: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the geometric mean over problems; None for fewer than two ratios.

    Percentile bootstrap that resamples problems, widened for few of them (`widening`).
    """
    middle = geometric_mean(ratios)
    if middle is None or len(ratios) < 2:  # noqa: PLR2004 - one says nothing of how problems differ
        return None
    generator = random.Random(_SEED)  # noqa: S311 - no secret
    logarithms = [math.log(one) for one in ratios]
    means = sorted(
        math.fsum(generator.choices(logarithms, k=len(logarithms))) / len(logarithms)
        for _ in range(RESAMPLES)
    )
    # The 2.5 % and 97.5 % quantiles; the centre is the mean itself, so an interval always holds it.
    centre, cut, wider = math.log(middle), RESAMPLES // 40, widening(len(ratios))
    low = centre - max(0.0, centre - means[cut]) * wider
    high = centre + max(0.0, means[-cut - 1] - centre) * wider
    return math.exp(low), math.exp(high)


def wilson_interval(successes: int, trials: int) -> tuple[float, float] | None:
    """Return the 95 % score interval of a share (Wilson 1927); None without a trial."""
    if not trials:
        return None
    z2, share = NORMAL**2, successes / trials
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = NORMAL / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    # At 0 and at all successes an end is exactly 0 or 1, which rounding must not miss.
    return (0.0 if successes == 0 else centre - half), (1.0 if successes == trials else centre + half)


def sign_test(wins: int, losses: int) -> float | None:
    """Return the two-sided exact p of as uneven a split if either side were as likely; None without any."""
    n = wins + losses
    if not n:
        return None
    tail = sum(math.comb(n, k) for k in range(min(wins, losses) + 1))
    # Twice the tail counts an even split twice.
    return float(min(1.0, 2 * tail / 2**n))
