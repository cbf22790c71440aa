"""Statistics of latency samples: paired ratios with bootstrap intervals, noise floor, clock resolution."""

from __future__ import annotations

import math

import numpy as np

from cutegen_nb.analysis.figures.bootstrap import widening

CLOSE_ENOUGH = 0.01
"""Half-width of each ratio's 95 % interval, relative to the ratio, at which sampling ends."""
CANDIDATE = ""
"""Name of the candidate among the samples."""
AGAIN = "again"
"""Name of the second call of the first baseline in each turn, for the noise floor."""
_ROUNDING_MS = 1e-6
"""Differences of samples in ms up to this are rounding: CUDA gives times in single precision."""
Samples = dict[str, list[list[float]]]
"""Latencies in ms by name: a list of samples for each block of turns."""


def settled(samples: Samples) -> bool:
    """Return whether each baseline's ratio to the candidate is known to ±1 %."""
    for name, blocks in samples.items():
        if name not in {CANDIDATE, AGAIN}:
            middle, low, high = ratio_interval(blocks, samples[CANDIDATE])
            if (high - low) / 2 > CLOSE_ENOUGH * middle:
                return False
    return True


def ratio_interval(
    baseline: list[list[float]], candidate: list[list[float]], resamples: int = 500
) -> tuple[float, float, float]:
    """Median of the paired ratios baseline ÷ candidate, and the bounds of its 95 % interval.

    Both arguments are lists of blocks of equal length, in ms. The bootstrap resamples blocks, not pairs:
    samples within a block share clocks and temperature. For few blocks its interval is too narrow and is
    widened (`widening`). One block alone gives the interval 0 to infinity.
    """
    ratios = np.asarray(baseline) / np.asarray(candidate)
    # A fixed seed: the same samples always give the same interval.
    generator = np.random.default_rng(0)
    chosen = generator.integers(0, len(ratios), size=(resamples, len(ratios)))
    medians = np.median(ratios[chosen].reshape(resamples, -1), axis=1)
    # Percentile interval: the 2.5 % and 97.5 % quantiles of the resampled medians.
    low, high = (float(item) for item in np.quantile(medians, [0.025, 0.975]))
    middle, wider = float(np.median(ratios)), widening(len(ratios))
    if middle <= 0 or math.isinf(wider):  # a clock that showed 0, or one block, which says nothing of others
        return middle, 0.0, math.inf
    # Widened on a logarithmic scale, on which r and 1/r are symmetric; 1.0 keeps the median inside.
    return middle, middle * min(1.0, low / middle) ** wider, middle * max(1.0, high / middle) ** wider


def noise_fraction(samples: Samples) -> float | None:
    """Largest distance from 1 of the interval of the first baseline's ratio to itself.

    None where the baseline was not called twice. A smaller difference between two kernels is noise: the same
    kernel through the same path differs by as much.
    """
    if AGAIN not in samples:
        return None
    first = next(name for name in samples if name not in {CANDIDATE, AGAIN})
    _, low, high = ratio_interval(samples[first], samples[AGAIN], resamples=2000)
    return max(abs(1 - low), abs(high - 1))


def resolution_fraction(samples: Samples) -> float:
    """Two steps of the clock as a share of the candidate's median; medians closer than this may be equal.

    The step is the smallest difference of two samples of one call: 32 ns on an H200, 1 % of 3 µs. Where each
    call's samples are all equal, the step is the greatest common divisor of the calls' times.
    """
    middle = float(np.median(samples[CANDIDATE]))
    if middle <= 0:
        return 0.0
    steps = [np.diff(np.unique(np.ravel(blocks))) for blocks in samples.values()]
    gaps = np.concatenate(steps)
    gaps = gaps[gaps > _ROUNDING_MS]
    return 2 * (float(gaps.min()) if len(gaps) else _common_step(samples)) / middle


def _common_step(samples: Samples) -> float:
    """Greatest common divisor of the calls' times in ms; 0 where all calls took equally long."""
    # Whole nanoseconds, because a greatest common divisor needs integers.
    whole_ns = {round(float(np.median(blocks)) * 1e6) for blocks in samples.values()}
    return math.gcd(*whole_ns) * 1e-6 if len(whole_ns) > 1 else 0.0
