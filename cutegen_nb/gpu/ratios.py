"""What samples say of two calls: the median of their paired ratios, its interval, and the noise floor."""

from __future__ import annotations

import math
import statistics

import numpy as np

CLOSE_ENOUGH = 0.01
"""Half the width of the interval of each ratio at which sampling ends."""
CANDIDATE = ""
"""The candidate's name among the samples."""
AGAIN = "again"
"""Name of the second call of the first baseline in each turn: it against itself is the noise floor."""
_NORMAL = statistics.NormalDist().inv_cdf(0.975)
_ROUNDING_MS = 1e-6
"""Differences below are those of single precision."""
Samples = dict[str, list[list[float]]]
"""ms by name, a list for each block of turns."""


def settled(samples: Samples) -> bool:
    """Whether each baseline's ratio to the candidate is known to ±1 %."""
    for name, blocks in samples.items():
        if name not in {CANDIDATE, AGAIN}:
            middle, low, high = ratio_interval(blocks, samples[CANDIDATE])
            if (high - low) / 2 > CLOSE_ENOUGH * middle:
                return False
    return True


def ratio_interval(
    baseline: list[list[float]], candidate: list[list[float]], resamples: int = 500
) -> tuple[float, float, float]:
    """Median of the pairwise ratios baseline ÷ candidate, and its 95 % interval.

    Both are lists of blocks of equal length. Blocks, not pairs, are resampled: samples within a block share
    clocks and temperature. So few blocks vary less among themselves than what they were drawn from does, for
    which the interval is widened.
    """
    ratios = np.asarray(baseline) / np.asarray(candidate)
    generator = np.random.default_rng(0)
    chosen = generator.integers(0, len(ratios), size=(resamples, len(ratios)))
    medians = np.median(ratios[chosen].reshape(resamples, -1), axis=1)
    low, high = (float(item) for item in np.quantile(medians, [0.025, 0.975]))
    middle, wider = float(np.median(ratios)), widening(len(ratios))
    if middle <= 0 or math.isinf(wider):  # a clock that showed 0, or one block, which says nothing of others
        return middle, 0.0, math.inf
    return middle, middle * min(1.0, low / middle) ** wider, middle * max(1.0, high / middle) ** wider


def widening(blocks: int) -> float:
    """By how much the bootstrap's interval of so many blocks is too narrow.

    Student's t in place of the normal distribution, and the n of a variance in place of n - 1: the expanded
    percentile interval (Hesterberg, "What Teachers Should Know About the Bootstrap", 2015). Student's
    quantile is Abramowitz and Stegun's expansion 26.7.5.
    """
    if blocks < 2:  # noqa: PLR2004 - one says nothing of how blocks differ
        return math.inf
    z, n = _NORMAL, blocks - 1
    student = (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )
    return student / z * math.sqrt(blocks / n)


def noise_of(samples: Samples) -> float | None:
    """How far from 1 the ratio of the first baseline to itself reaches; None where it was not called twice.

    A difference smaller than this is none: the same kernel through the same path differs by as much.
    """
    if AGAIN not in samples:
        return None
    first = next(name for name in samples if name not in {CANDIDATE, AGAIN})
    _, low, high = ratio_interval(samples[first], samples[AGAIN], resamples=2000)
    return max(abs(1 - low), abs(high - 1))


def resolution_fraction(samples: Samples) -> float:
    """What two steps of the clock are of the candidate's median: medians that differ by less may be equal.

    The step is the smallest by which two samples of one call differ: 32 ns on an H200, 1 % of 3 µs.
    Where each call's samples are all the same, it is the largest that all of them are whole multiples of.
    """
    middle = float(np.median(samples[CANDIDATE]))
    if middle <= 0:
        return 0.0
    steps = [np.diff(np.unique(np.ravel(blocks))) for blocks in samples.values()]
    gaps = np.concatenate(steps)
    gaps = gaps[gaps > _ROUNDING_MS]
    return 2 * (float(gaps.min()) if len(gaps) else _common_step(samples)) / middle


def _common_step(samples: Samples) -> float:
    """In ms; 0 where every call took equally long, which shows nothing of the clock."""
    whole_ns = {round(float(np.median(blocks)) * 1e6) for blocks in samples.values()}
    return math.gcd(*whole_ns) * 1e-6 if len(whole_ns) > 1 else 0.0
