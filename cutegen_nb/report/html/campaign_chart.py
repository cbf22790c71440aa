"""Chart of a campaign as SVG: each problem's speedups, or its estimated share of the roof without a GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from cutegen_nb.analysis.campaign.problem_result import ProblemResult, label
from cutegen_nb.analysis.figures.quantity import share, times
from cutegen_nb.report.markup import Style, fill

_LEFT, _WIDTH, _ROW = 260.0, 620.0, 20.0
"""Pixels: width of the names, width of the plot, height of a row."""
_NAME = 34
"""Most characters of a problem's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """One value of a row with its interval, in pixels."""

    series: int
    x: float
    low: float
    high: float
    text: str


def chart(results: Sequence[ProblemResult]) -> Markup:
    """Draw the chart; empty if no problem has a speedup or an estimate."""
    names = list(dict.fromkeys(one.name for item in results if item.correct for one in item.baselines))
    if names:
        return _speedups(results, names)
    if any(item.correct and item.estimated_sol_fraction for item in results):
        return _shares(results)
    return Markup()


def _name(item: ProblemResult) -> str:
    name = label(item.file)
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"


def _speedups(results: Sequence[ProblemResult], names: Sequence[str]) -> Markup:
    ratios = [one.speedup for item in results if item.correct for one in item.baselines if one.speedup > 0]
    low = math.floor(math.log2(min(0.5, *ratios)))
    high = math.ceil(math.log2(max(2.0, *ratios)))

    def x(ratio: float) -> float:
        inside = min(max(math.log2(max(ratio, 2.0**low)), low), high)
        return _LEFT + _WIDTH * (inside - low) / (high - low)

    rows = [
        (
            _name(item),
            [
                _Mark(
                    series=names.index(one.name),
                    x=x(one.speedup),
                    low=x(one.speedup_low),
                    high=x(one.speedup_high),
                    text=f"{times(one.speedup)} over {one.name}",
                )
                for one in item.baselines
                if item.correct and one.speedup > 0
            ],
        )
        for item in results
    ]
    ticks = [(x(2.0**step), f"{2.0**step:g}×") for step in range(low, high + 1)]
    return _drawn(
        "Speedup of the best kernel, logarithmic; lines are 95 % intervals of a single kernel",
        rows,
        ticks,
        x(1.0),
        [f"over {name}" for name in names],
    )


def _shares(results: Sequence[ProblemResult]) -> Markup:
    def x(fraction: float) -> float:
        return _LEFT + _WIDTH * min(max(fraction, 0.0), 1.0)

    rows = []
    for item in results:
        marks = []
        found, fraction = item.estimate, item.estimated_sol_fraction
        if item.correct and found and fraction:
            marks.append(
                _Mark(
                    series=0,
                    x=x(fraction),
                    low=x(fraction * found.seconds / found.seconds_high),
                    high=x(fraction * found.seconds / found.seconds_low),
                    text=f"estimated {share(fraction)} of the roof",
                )
            )
        rows.append((_name(item), marks))
    ticks = [(x(step / 4), f"{25 * step} %") for step in range(5)]
    return _drawn(
        "Estimated share of the roof of the best kernel; none was timed; lines are intervals",
        rows,
        ticks,
        x(1.0),
        ["estimate"],
    )


def _drawn(
    title: str,
    rows: Sequence[tuple[str, Sequence[_Mark]]],
    ticks: Sequence[tuple[float, str]],
    line: float,
    series: Sequence[str],
) -> Markup:
    return fill(
        "campaign_chart",
        Style.PAGE,
        title=title,
        rows=[(index * _ROW + _ROW / 2, name, marks) for index, (name, marks) in enumerate(rows)],
        ticks=ticks,
        line=line,
        series=series,
        left=_LEFT,
        width=_LEFT + _WIDTH + 30,
        height=len(rows) * _ROW,
    )
