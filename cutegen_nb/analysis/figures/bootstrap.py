"""Correction of a bootstrap interval for few samples."""

from __future__ import annotations

import math
import statistics

NORMAL = statistics.NormalDist().inv_cdf(0.975)
"""Normal quantile at the upper end of a two-sided 95 % interval, 1.96."""


def widening(blocks: int) -> float:
    """Factor by which the bootstrap's interval of n blocks is too narrow: t / z · √(n / (n - 1)).

    Student's t replaces the normal quantile z, and n - 1 replaces the n of the resampled variance: the
    expanded percentile interval (Hesterberg, "What Teachers Should Know About the Bootstrap", 2015).
    Student's quantile is Abramowitz and Stegun's expansion 26.7.5.
    """
    if blocks < 2:  # noqa: PLR2004 - one says nothing of how blocks differ
        return math.inf
    z, n = NORMAL, blocks - 1  # n: degrees of freedom
    student = (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )
    return student / z * math.sqrt(blocks / n)
