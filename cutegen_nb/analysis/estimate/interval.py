"""Intervals of estimates and of their ratios, from the errors that the model shows on measured kernels."""

from __future__ import annotations

import math

from cutegen_nb.analysis.estimate.launch_terms import DRAM, ISSUE, L1, L2, LATENCY, LAUNCH, TENSOR
from cutegen_nb.core.estimate import Estimate, FullSizeSample, Term

_NINE_OF_TEN = 1.645
"""Standard deviations on either side that hold nine of ten values of a normal distribution."""
_SHARE_POWER = 2
"""Exponent that turns terms into weights: the largest term's error counts most."""

ERROR = {DRAM: 0.08, L2: 0.35, L1: 0.25, LATENCY: 0.25, ISSUE: 0.25, TENSOR: 0.25, LAUNCH: 0.3}
"""Standard deviation of ln(estimate ÷ measured) of a kernel that this term bounds."""
PIPE_ERROR = 0.2
"""The same for a kernel that an arithmetic pipe bounds."""
MOST_DEVIATION = 3.0
"""Largest standard deviation that is told, a factor of 140 at either end: the estimate then says nothing."""
NOT_SHARED = 0.25
"""Share of a kernel's error that another kernel of the same problem does not have, though the same terms
bound both."""
FARTHER = 0.3
"""Part of the logarithm of a ratio by which it may be wrong: of kernels far apart, less is alike."""


def shares(terms: tuple[Term, ...]) -> dict[str, float]:
    """Return each term's weight in the time, by name; the weights add up to 1."""
    weights = {one.name: one.seconds**_SHARE_POWER for one in terms}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()} if total else {}


def deviation(terms: tuple[Term, ...], sample: FullSizeSample) -> float:
    """Return the standard deviation of ln(estimate ÷ measured): of the model and of the sample."""
    model = math.sqrt(sum(weight * _error(name) ** 2 for name, weight in shares(terms).items()))
    # Launches are sampled apart; the largest error stands for all, since one launch mostly dominates.
    sampled = max((one.error_fraction for one in sample.launches), default=0.0)
    return min(math.hypot(model, sampled), MOST_DEVIATION)


def interval(seconds: float, sigma: float) -> tuple[float, float]:
    """Return the ends of the interval that holds nine of ten measured times."""
    return seconds * math.exp(-_NINE_OF_TEN * sigma), seconds * math.exp(_NINE_OF_TEN * sigma)


def ratio_deviation(best: Estimate, candidate: Estimate) -> float:
    """Return the standard deviation of the logarithm of the ratio of two estimates of one problem.

    Errors of the same term mostly cancel. What remains is a part of them, the error of the share in which the
    two differ, and an error that grows with the ratio.
    """
    before, after = shares(best.terms), shares(candidate.terms)
    names = before.keys() | after.keys()
    # Total variation distance of the two distributions, from 0 to 1.
    apart = sum(abs(before.get(name, 0.0) - after.get(name, 0.0)) for name in names) / 2
    each = max(_deviation_of(best), _deviation_of(candidate))
    return math.hypot(NOT_SHARED * each, apart * each, FARTHER * math.log(best.seconds / candidate.seconds))


def _deviation_of(estimate: Estimate) -> float:
    """Return the standard deviation that an estimate's interval was made from."""
    return math.log(estimate.seconds_high / estimate.seconds_low) / (2 * _NINE_OF_TEN)


def _error(name: str) -> float:
    return ERROR.get(name, PIPE_ERROR)
