"""Paired comparison of two variants of a campaign over the same problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from cutegen_nb.analysis.campaign.problem_result import ProblemResult
from cutegen_nb.analysis.campaign.statistics import geometric_interval, geometric_mean, sign_test
from cutegen_nb.analysis.history.compare import ACROSS_FRACTION

TIE_FRACTION = ACROSS_FRACTION
"""Relative difference up to which two kernels of two runs are a tie."""


class PairResult(StrEnum):
    """Result of a variant on one problem, against the campaign without the change."""

    WIN = "win"
    """The variant is faster by more than `TIE_FRACTION`, or it alone has a correct kernel."""
    LOSS = "loss"
    """The campaign without the change is faster by more than that, or it alone has a correct kernel."""
    TIE = "tie"
    """The two are within `TIE_FRACTION`, or neither has a correct kernel."""
    NOT_COMPARED = "not compared"
    """A side is not over, or has a correct kernel without a time or an estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemPair:
    """One problem under both variants."""

    name: str
    """Name of the problem."""
    file: str
    """Path of the problem file."""
    result: PairResult
    """Result of the variant."""
    ratio: float | None = None
    """Time without the change ÷ time of the variant; above 1 the variant is faster. None unless both have
    one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantComparison:
    """A variant against the campaign without the change, over the same problems."""

    variant: str
    """Name of the variant: ``guide=off``."""
    pairs: tuple[ProblemPair, ...]
    """Every problem, in order."""
    measured: bool
    """True if the ratios are of measured latencies, False if of estimates."""
    geometric_mean: float | None
    """Geometric mean of the ratios; None without any."""
    geometric_interval: tuple[float, float] | None
    """Its 95 % bootstrap interval over problems; None for fewer than two."""
    p_value: float | None
    """Two-sided sign test on wins and losses, without ties; None without either."""

    def number(self, result: PairResult) -> int:
        """Number of problems with a result."""
        return sum(item.result is result for item in self.pairs)

    @property
    def compared(self) -> int:
        """Problems with a ratio."""
        return sum(item.ratio is not None for item in self.pairs)


def compare_variants(
    variant: str, base: Sequence[ProblemResult], changed: Sequence[ProblemResult]
) -> VariantComparison:
    """Compare two campaigns problem by problem; both list the same problems in the same order."""
    both = list(zip(base, changed, strict=True))
    pairs = tuple(_pair(one, other) for one, other in both)
    ratios = [item.ratio for item in pairs if item.ratio is not None]
    wins, losses = (sum(item.result is one for item in pairs) for one in (PairResult.WIN, PairResult.LOSS))
    return VariantComparison(
        variant=variant,
        pairs=pairs,
        measured=any(item.latency_ms is not None for pair in both for item in pair),
        geometric_mean=geometric_mean(ratios),
        geometric_interval=geometric_interval(ratios),
        p_value=sign_test(wins, losses),
    )


def _pair(base: ProblemResult, changed: ProblemResult) -> ProblemPair:
    if not (base.state.is_over and changed.state.is_over):
        return ProblemPair(name=base.name, file=base.file, result=PairResult.NOT_COMPARED)
    if base.correct != changed.correct:
        return ProblemPair(
            name=base.name, file=base.file, result=PairResult.WIN if changed.correct else PairResult.LOSS
        )
    if not base.correct:
        return ProblemPair(name=base.name, file=base.file, result=PairResult.TIE)
    # A time and an estimate are not compared.
    alike = (base.latency_ms is None) == (changed.latency_ms is None)
    if not alike or not base.best_s or not changed.best_s:
        return ProblemPair(name=base.name, file=base.file, result=PairResult.NOT_COMPARED)
    ratio = base.best_s / changed.best_s
    result = PairResult.TIE
    if ratio > 1 + TIE_FRACTION:
        result = PairResult.WIN
    elif ratio < 1 / (1 + TIE_FRACTION):
        result = PairResult.LOSS
    return ProblemPair(name=base.name, file=base.file, result=result, ratio=ratio)
