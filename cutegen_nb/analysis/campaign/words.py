"""Figures of a campaign as rows of text, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from cutegen_nb.analysis.campaign.paired import TIE_FRACTION, PairResult, VariantComparison
from cutegen_nb.analysis.campaign.problem_result import ProblemResult, label
from cutegen_nb.analysis.campaign.totals import BaselineStatistics, CampaignTotals
from cutegen_nb.analysis.figures.quantity import count, duration, interval, share, times
from cutegen_nb.analysis.figures.spending import dollars

_DASH = "–"
_MINUTE_S = 60
NO_RATIO = (
    "No correct kernel was timed, so there is no ratio against a baseline. An estimate is computed and never "
    "measured."
)
"""Note on the figures of a campaign without a GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureTable:
    """Table of text: headings, rows, and the columns that hold figures."""

    heading: tuple[str, ...]
    """Heading of each column."""
    rows: tuple[tuple[str, ...], ...]
    """Cells of each row, as many as the heading has."""
    figures: frozenset[int]
    """Places of the columns with figures, from 0."""


def problems_table(
    results: Sequence[ProblemResult], *, with_intervals: bool = True, without: Collection[str] = ()
) -> FigureTable:
    """Return a row for each problem; columns that would be empty in every row are left out.

    A reason ends at its first semicolon: the session's own report has all of it. `without` names columns to
    leave out, for a narrow terminal.
    """
    names = tuple(dict.fromkeys(one.name for item in results for one in item.baselines))
    timed = any(item.latency_ms is not None for item in results)
    estimated = any(item.estimate for item in results)
    columns: list[tuple[str, Callable[[ProblemResult], str], bool, bool]] = [
        ("problem", lambda item: label(item.file), False, True),
        ("class", lambda item: item.workload_class or _DASH, False, True),
        ("verdict", lambda item: item.verdict or item.state.value, False, True),
        ("best", lambda item: item.revision or _DASH, False, True),
        ("rounds", lambda item: str(item.rounds), True, True),
        ("latency", lambda item: _or_dash(item.latency_ms, lambda ms: duration(ms / 1e3)), True, timed),
        *((f"over {name}", _over(name, with_interval=with_intervals), True, True) for name in names),
        ("of roof", lambda item: _or_dash(item.sol_fraction, share), True, timed),
        ("estimate", _estimate, True, estimated),
        ("est. of roof", lambda item: _or_dash(item.estimated_sol_fraction, share), True, estimated),
        ("tokens", lambda item: count(item.tokens), True, any(item.tokens for item in results)),
        (
            "cost",
            lambda item: _or_dash(item.dollars, dollars),
            True,
            any(item.dollars is not None for item in results),
        ),
        ("GPU s", lambda item: f"{item.gpu_s:.1f}", True, any(item.gpu_s for item in results)),
        ("min", lambda item: f"{item.seconds / _MINUTE_S:.1f}", True, True),
        ("ended", _ended, False, True),
    ]  # fmt: skip
    shown = [column for column in columns if column[3] and column[0] not in without]
    return FigureTable(
        heading=tuple(column[0] for column in shown),
        rows=tuple(tuple(column[1](item) for column in shown) for item in results),
        figures=frozenset(place for place, column in enumerate(shown) if column[2]),
    )


def _estimate(item: ProblemResult) -> str:
    return duration(item.estimate.seconds) if item.estimate else _DASH


def _over(name: str, *, with_interval: bool) -> Callable[[ProblemResult], str]:
    def cell(item: ProblemResult) -> str:
        found = next((one for one in item.baselines if one.name == name), None)
        if found is None:
            return "not had" if name in item.missing else _DASH
        if not with_interval:
            return times(found.speedup)
        return interval(found.speedup, found.speedup_low, found.speedup_high)

    return cell


def _ended(item: ProblemResult) -> str:
    reason = item.reason.partition(";")[0]
    # Without a verdict the state stands in its place.
    if item.state.is_regular or (reason and not item.verdict):
        return reason
    return f"{item.state.value}: {reason}" if reason else item.state.value


def totals_table(totals: CampaignTotals) -> FigureTable:
    """Return the figures over all problems, each with the way in which failed problems enter it."""
    rows = [
        ("problems run", _run_text(totals), "every share is of these; the cost is of all"),
        ("correct", _correct_text(totals), "no correct kernel counts as 0; Wilson's 95 % interval"),
    ]  # fmt: skip
    if totals.with_library:
        rows.append(("  with a part by PyTorch", str(totals.with_library), "as --library allows"))
    if totals.median_sol is not None:
        rows.append(
            ("share of the roof, median", share(totals.median_sol), _only_correct(totals.timed, "timed"))
        )
    if totals.median_estimated_sol is not None:
        rows.append(
            (
                "estimated share of the roof, median",
                share(totals.median_estimated_sol),
                f"{_only_correct(totals.estimated, 'estimated')}; computed, not measured",
            )
        )
    no_price = "no price is known" if totals.dollars is None else ""
    rows += [
        ("rounds", count(totals.rounds), ""),
        ("tokens", count(totals.tokens), "asked and answered" if totals.tokens else "the author used none"),
        ("cost", _or_dash(totals.dollars, dollars), no_price),
        ("time on a GPU", _span(totals.gpu_s) if totals.gpu_s else "none", ""),
        ("time of the rounds", _span(totals.seconds), "without the time between two runs"),
    ]  # fmt: skip
    return FigureTable(
        heading=("over all", "", "how it is counted"), rows=tuple(rows), figures=frozenset({1})
    )


def _run_text(totals: CampaignTotals) -> str:
    others = [f"{number} {state.value}" for state, number in totals.states.items() if not state.is_regular]
    said = f" ({', '.join(others)})" if others else ""
    return f"{totals.run} of {totals.problems}{said}"


def _correct_text(totals: CampaignTotals) -> str:
    if totals.correct_interval is None or totals.correct_share is None:
        return _DASH
    low, high = totals.correct_interval
    return f"{totals.correct} = {100 * totals.correct_share:.1f} % ({100 * low:.1f}–{100 * high:.1f} %)"


def _only_correct(number: int, how: str) -> str:
    return f"over the {number} correct and {how} kernels, without failures"


def _span(seconds: float) -> str:
    return duration(seconds) if seconds < 2 * _MINUTE_S else f"{seconds / _MINUTE_S:.1f} min"


def speedups_table(totals: CampaignTotals) -> FigureTable:
    """Return the figures over each baseline, each with the way in which failed problems enter it."""
    of = totals.baselines
    correct = "over the correct and timed kernels, without failures"
    over_all = f"of all {totals.run}; a failure counts as 0"
    thresholds = [p for p, _ in of[0].fast] if of else []
    rows = [
        ("correct and timed", *(str(one.compared) for one in of), ""),
        ("geometric mean", *(_geometric(one) for one in of), f"{correct}; 95 % bootstrap over problems"),
        (
            "geometric mean, failures as 1.00",
            *(_or_dash(one.geometric_with_fallback, times) for one in of),
            f"over all {totals.run}: a failure falls back to the baseline",
        ),
        ("median", *(_or_dash(one.median, times) for one in of), correct),
        (
            "arithmetic mean",
            *(_or_dash(one.arithmetic_mean, times) for one in of),
            f"{correct}; a few large ratios decide it",
        ),
        *(
            (
                f"Fast_{p:g}",
                *(share(dict(one.fast)[p]) for one in of),
                f"{over_all} (KernelBench's fast_p: correct and above {p:g}×)",
            )
            for p in thresholds
        ),
        ("above 1.00×", *(str(one.above_1) for one in of), "correct and timed kernels"),
        ("above 1.05×", *(str(one.above_105) for one in of), "correct and timed kernels"),
    ]
    return FigureTable(
        heading=("speedup", *(f"over {one.name}" for one in of), "how it is counted"),
        rows=tuple(rows),
        figures=frozenset(range(1, len(of) + 1)),
    )


def _geometric(one: BaselineStatistics) -> str:
    if one.geometric_mean is None:
        return _DASH
    if one.geometric_interval is None:
        return times(one.geometric_mean)
    return interval(one.geometric_mean, *one.geometric_interval)


def variants_table(
    base: CampaignTotals, compared: Sequence[tuple[VariantComparison, CampaignTotals]]
) -> FigureTable:
    """Return a row for the campaign without a change, and one for each variant against it."""
    heading = (
        "variant", "correct", "ratio, geometric mean", "pairs", "wins", "losses", "ties", "not compared",
        "sign test p", "tokens", "cost", "min",
    )  # fmt: skip
    rows = [("without a change", str(base.correct), *(_DASH for _ in range(7)), *_costs(base))]
    rows += [(item.variant, str(totals.correct), *_pairs(item), *_costs(totals)) for item, totals in compared]
    return FigureTable(heading=heading, rows=tuple(rows), figures=frozenset(range(1, len(heading))))


def _pairs(item: VariantComparison) -> tuple[str, ...]:
    ratio = _DASH
    if item.geometric_mean is not None:
        spread = item.geometric_interval
        ratio = interval(item.geometric_mean, *spread) if spread else times(item.geometric_mean)
    numbers = (PairResult.WIN, PairResult.LOSS, PairResult.TIE, PairResult.NOT_COMPARED)
    p_value = _or_dash(item.p_value, lambda p: f"{p:.2g}")
    return (ratio, str(item.compared), *(str(item.number(one)) for one in numbers), p_value)


def _costs(totals: CampaignTotals) -> tuple[str, str, str]:
    return (
        count(totals.tokens),
        _or_dash(totals.dollars, dollars),
        f"{totals.seconds / _MINUTE_S:.1f}",
    )


def variants_note(compared: Sequence[VariantComparison]) -> str:
    """Say how the variants were compared."""
    figure = "latencies" if any(item.measured for item in compared) else "estimated times"
    return (
        f"A ratio is that of the best kernels' {figure}, without the change ÷ with it; above 1 the "
        f"variant is faster. Within {100 * TIE_FRACTION:g} % is a tie, as is a problem that neither "
        "solved; one that only one solved is its win, without a ratio. The sign test leaves ties out."
    )


def pairs_table(compared: Sequence[VariantComparison]) -> FigureTable:
    """Return a row for each problem: its ratio and its result under each variant."""
    rows = tuple(
        (label(of_problem[0].file), *(_pair_text(pair.ratio, pair.result) for pair in of_problem))
        for of_problem in zip(*(item.pairs for item in compared), strict=True)
    )
    heading = ("problem", *(item.variant for item in compared))
    return FigureTable(heading=heading, rows=rows, figures=frozenset(range(1, len(heading))))


def _pair_text(ratio: float | None, result: PairResult) -> str:
    return result.value if ratio is None else f"{times(ratio)} {result.value}"


def _or_dash(value: float | None, write: Callable[[float], str]) -> str:
    return _DASH if value is None else write(value)
