"""Tables of a campaign for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cutegen_nb.analysis.campaign.paired import VariantComparison, compare_variants
from cutegen_nb.analysis.campaign.problem_result import ProblemResult, label
from cutegen_nb.analysis.campaign.totals import totals_of
from cutegen_nb.analysis.campaign.words import (
    NO_RATIO,
    FigureTable,
    pairs_table,
    problems_table,
    speedups_table,
    totals_table,
    variants_note,
    variants_table,
)
from cutegen_nb.report.markup import visible
from cutegen_nb.report.terminal.fitting import paragraph, table_lines
from cutegen_nb.report.terminal.session import cut

_LEAST = frozenset({"ended", "class", "rounds", "best", "tokens", "GPU s", "cost", "min", "of roof"})
"""Columns that a narrow terminal has no room for."""
_NARROWER: tuple[tuple[bool, frozenset[str]], ...] = (
    (True, frozenset()),
    (False, frozenset()),
    (False, frozenset({"ended"})),
    (False, frozenset({"ended", "class"})),
    (False, frozenset({"ended", "class", "rounds", "best", "tokens", "GPU s"})),
    (False, _LEAST),
    (False, _LEAST | {"latency"}),
)
"""Forms of the table of problems, from wide to narrow: with intervals or not, and the columns left out."""


def campaign_lines(
    results: Sequence[ProblemResult], variants: Sequence[tuple[str, Sequence[ProblemResult]]] = ()
) -> list[str]:
    """Format a row for each problem, the figures over all, and the comparison of `variants` by name."""
    totals = totals_of(results)
    lines = [*_problem_lines(results), "", *_lines(totals_table(totals)), ""]
    lines += _lines(speedups_table(totals)) if totals.baselines else paragraph(NO_RATIO)
    if not variants:
        return lines
    compared = compared_with(results, variants)
    table = variants_table(
        totals, [(item, totals_of(of)) for item, (_, of) in zip(compared, variants, strict=True)]
    )
    return [
        *lines, "", *_lines(table), *paragraph(variants_note(compared)), "", *_lines(pairs_table(compared)),
    ]  # fmt: skip


def compared_with(
    base: Sequence[ProblemResult], variants: Sequence[tuple[str, Sequence[ProblemResult]]]
) -> list[VariantComparison]:
    """Compare each variant with the campaign without a change."""
    return [compare_variants(name, base, changed) for name, changed in variants]


def _problem_lines(results: Sequence[ProblemResult]) -> list[str]:
    """Format a row for each problem, with fewer columns on a narrower terminal; the page has all.

    Where the column of reasons is left out, those of problems without a correct kernel follow the table.
    """
    lines: list[str] = []
    without: frozenset[str] = frozenset()
    for with_intervals, without in _NARROWER:
        table = problems_table(results, with_intervals=with_intervals, without=without)
        rows = tuple((cut(row[0]), *row[1:]) for row in table.rows)
        lines = _lines(replace(table, rows=rows))
        # Heading, rule and a line for each row: no cell was wrapped.
        if len(lines) == len(rows) + 2 and lines[1].startswith("─"):
            break
    if "ended" not in without:
        return lines
    failed = [item for item in results if not item.correct and item.reason]
    for item in failed:
        lines += paragraph(visible(f"{label(item.file)}: {item.reason}"), "  ", first="")
    return lines


def _lines(table: FigureTable) -> list[str]:
    rows = [table.heading, *(tuple(visible(cell) for cell in row) for row in table.rows)]
    return table_lines(rows, right=table.figures)
