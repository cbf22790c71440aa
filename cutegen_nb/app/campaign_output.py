"""JSON object that ``campaign --json`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutegen_nb.analysis.campaign.paired import PairResult, VariantComparison
from cutegen_nb.analysis.campaign.problem_result import ProblemResult
from cutegen_nb.analysis.campaign.totals import BaselineStatistics, CampaignTotals, totals_of
from cutegen_nb.core.search.campaign import CampaignRecord
from cutegen_nb.core.timing import BaselineTiming


def campaign_json(
    record: CampaignRecord,
    results: Sequence[ProblemResult],
    variants: Sequence[tuple[VariantComparison, Sequence[ProblemResult]]] = (),
) -> dict[str, Any]:
    """Return settings, problems and figures of a campaign, and its variants with their comparisons."""
    return {
        "campaign": record.name,
        "created_at": record.created_at,
        "settings": record.settings,
        "budgets": record.budgets,
        "environment": record.environment,
        "problems": [problem_result_json(item) for item in results],
        "totals": totals_json(totals_of(results)),
        "variants": [
            {
                "variant": compared.variant,
                "problems": [problem_result_json(item) for item in changed],
                "totals": totals_json(totals_of(changed)),
                "comparison": _comparison_json(compared),
            }
            for compared, changed in variants
        ],
    }


def problem_result_json(item: ProblemResult) -> dict[str, Any]:
    """Return the row of one problem. An estimate is computed, never measured."""
    found = item.estimate
    return {
        "problem": item.name,
        "file": item.file,
        "session": item.session or None,
        "state": item.state.value,
        "reason": item.reason or None,
        "class": item.workload_class or None,
        "verdict": item.verdict or None,
        "correct": item.correct,
        "library": item.library.split(",") if item.library else [],
        "rounds": item.rounds,
        "best": item.revision or None,
        "latency_ms": item.latency_ms,
        "baselines": [_baseline_json(one) for one in item.baselines],
        "baselines_missing": list(item.missing),
        "sol_fraction": item.sol_fraction,
        "estimate": {
            "target": found.target,
            "seconds": found.seconds,
            "seconds_low": found.seconds_low,
            "seconds_high": found.seconds_high,
            "sol_fraction": item.estimated_sol_fraction,
        }
        if found
        else None,
        "tokens": item.tokens,
        "dollars": item.dollars,
        "gpu_s": item.gpu_s,
        "seconds": item.seconds,
    }


def _baseline_json(one: BaselineTiming) -> dict[str, Any]:
    return {
        "name": one.name,
        "speedup": one.speedup,
        "speedup_low": one.speedup_low,
        "speedup_high": one.speedup_high,
    }


def totals_json(totals: CampaignTotals) -> dict[str, Any]:
    """Return the figures over all problems; an interval is a list of its two ends."""
    return {
        "problems": totals.problems,
        "run": totals.run,
        "states": {state.value: number for state, number in totals.states.items()},
        "correct": totals.correct,
        "correct_share": totals.correct_share,
        "correct_interval": _ends(totals.correct_interval),
        "with_library": totals.with_library,
        "baselines": [_statistics_json(one) for one in totals.baselines],
        "sol_fraction": {"median": totals.median_sol, "kernels": totals.timed},
        "estimated_sol_fraction": {"median": totals.median_estimated_sol, "kernels": totals.estimated},
        "rounds": totals.rounds,
        "tokens": totals.tokens,
        "dollars": totals.dollars,
        "gpu_s": totals.gpu_s,
        "seconds": totals.seconds,
    }


def _statistics_json(one: BaselineStatistics) -> dict[str, Any]:
    return {
        "name": one.name,
        "compared": one.compared,
        "geometric_mean": one.geometric_mean,
        "geometric_interval": _ends(one.geometric_interval),
        "geometric_mean_failures_as_1": one.geometric_with_fallback,
        "median": one.median,
        "arithmetic_mean": one.arithmetic_mean,
        "fast": {f"{p:g}": fraction for p, fraction in one.fast},
        "above_1.00": one.above_1,
        "above_1.05": one.above_105,
    }


def _comparison_json(compared: VariantComparison) -> dict[str, Any]:
    return {
        "figure": "latency" if compared.measured else "estimate",
        "pairs": [
            {"problem": pair.name, "ratio": pair.ratio, "result": pair.result.value}
            for pair in compared.pairs
        ],
        "compared": compared.compared,
        "geometric_mean": compared.geometric_mean,
        "geometric_interval": _ends(compared.geometric_interval),
        **{result.value.replace(" ", "_"): compared.number(result) for result in PairResult},
        "sign_test_p": compared.p_value,
    }


def _ends(interval: tuple[float, float] | None) -> list[float] | None:
    return list(interval) if interval else None
