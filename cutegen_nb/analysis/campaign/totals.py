"""Figures over all problems of a campaign, and how failed problems enter each."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_nb.analysis.campaign.problem_result import ProblemResult
from cutegen_nb.analysis.campaign.statistics import geometric_interval, geometric_mean, wilson_interval
from cutegen_nb.core.search.campaign import ProblemState

THRESHOLDS = (1.0, 1.5, 2.0)
"""Thresholds p of fast_p (KernelBench, arXiv 2502.10517)."""
_CLEARLY = 1.05
"""Speedup from which a kernel counts as clearly faster: runs of one kernel differ by less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineStatistics:
    """Speedups over one baseline."""

    name: str
    """Name of the baseline."""
    compared: int
    """Correct kernels that were timed against it."""
    geometric_mean: float | None
    """Geometric mean over them; None without any."""
    geometric_interval: tuple[float, float] | None
    """Its 95 % bootstrap interval over problems; None for fewer than two."""
    geometric_with_fallback: float | None
    """Geometric mean over all problems that were run, where each other problem counts as 1.00."""
    median: float | None
    """Median over the correct kernels."""
    arithmetic_mean: float | None
    """Arithmetic mean over the correct kernels, for comparison with papers; few large ratios decide it."""
    fast: tuple[tuple[float, float], ...]
    """fast_p: each threshold p with the share of all problems run that are correct and faster than p×."""
    above_1: int
    """Correct kernels with a speedup above 1.00."""
    above_105: int
    """Correct kernels with a speedup above 1.05."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignTotals:
    """Figures over all problems of a campaign."""

    problems: int
    """Problems asked for."""
    run: int
    """Problems that are over; every share is of these."""
    states: dict[ProblemState, int]
    """Number of problems by state."""
    correct: int
    """Problems with a correct kernel."""
    correct_interval: tuple[float, float] | None
    """Wilson's 95 % interval of the correct share; None if nothing was run."""
    with_library: int
    """Correct kernels beside which PyTorch computed a part, as the library policy allows."""
    baselines: tuple[BaselineStatistics, ...]
    """Speedups by baseline; empty without a GPU."""
    timed: int
    """Correct kernels with a measured latency and a floor."""
    median_sol: float | None
    """Median share of the roof over the timed kernels."""
    estimated: int
    """Correct kernels with an estimated time and a floor."""
    median_estimated_sol: float | None
    """Median estimated share of the roof over the estimated kernels."""
    rounds: int
    """Rounds of all sessions."""
    tokens: int
    """Tokens of prompts and replies."""
    dollars: float | None
    """Cost in US dollars; None if no price is known."""
    gpu_s: float
    """Seconds that evaluations held a GPU."""
    seconds: float
    """Wall time of the rounds in seconds."""

    @property
    def correct_share(self) -> float | None:
        """Correct problems ÷ problems run; None if nothing was run."""
        return self.correct / self.run if self.run else None


def totals_of(results: Sequence[ProblemResult]) -> CampaignTotals:
    """Compute the figures over all problems; the cost counts unfinished problems too."""
    run = [item for item in results if item.state.is_over]
    correct = [item for item in run if item.correct]
    sol = [item.sol_fraction for item in correct if item.sol_fraction is not None]
    estimated = [item.estimated_sol_fraction for item in correct if item.estimated_sol_fraction is not None]
    prices = [item.dollars for item in results if item.dollars is not None]
    names = dict.fromkeys(name for item in correct for name in _compared_with(item))
    return CampaignTotals(
        problems=len(results),
        run=len(run),
        states={
            state: number for state in ProblemState
            if (number := sum(item.state is state for item in results))
        },
        correct=len(correct),
        correct_interval=wilson_interval(len(correct), len(run)),
        with_library=sum(bool(item.library) for item in correct),
        baselines=tuple(_over_baseline(name, run) for name in names),
        timed=len(sol),
        median_sol=_median(sol),
        estimated=len(estimated),
        median_estimated_sol=_median(estimated),
        rounds=sum(item.rounds for item in results),
        tokens=sum(item.tokens for item in results),
        dollars=sum(prices) if prices else None,
        gpu_s=sum(item.gpu_s for item in results),
        seconds=sum(item.seconds for item in results),
    )  # fmt: skip


def _compared_with(item: ProblemResult) -> tuple[str, ...]:
    return (*(one.name for one in item.baselines), *(item.missing if item.latency_ms is not None else ()))


def _over_baseline(name: str, run: Sequence[ProblemResult]) -> BaselineStatistics:
    ratios = [ratio for item in run if (ratio := item.speedup(name)) is not None and ratio > 0]
    fallback = [*ratios, *(1.0 for _ in range(len(run) - len(ratios)))]
    return BaselineStatistics(
        name=name,
        compared=len(ratios),
        geometric_mean=geometric_mean(ratios),
        geometric_interval=geometric_interval(ratios),
        geometric_with_fallback=geometric_mean(fallback),
        median=_median(ratios),
        arithmetic_mean=statistics.fmean(ratios) if ratios else None,
        fast=tuple((p, sum(one > p for one in ratios) / len(run)) for p in THRESHOLDS),
        above_1=sum(one > 1 for one in ratios),
        above_105=sum(one > _CLEARLY for one in ratios),
    )


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None
