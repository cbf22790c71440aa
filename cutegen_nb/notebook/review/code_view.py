"""Compiled code of a round's kernels beside its source, for the panel."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.bottleneck.diagnose import Diagnosis
from cutegen_nb.analysis.tables.line_heat import KernelHeat, heat
from cutegen_nb.core.compiled.listing import CodeListing
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.profile import Profile, function_name
from cutegen_nb.report.html.code import highlight
from cutegen_nb.report.markup import visible

_COLUMNS = {
    "Instructions": "Instr.",
    "Global bytes": "Global",
    "Bank conflicts": "Conflicts",
    "Stalls": "Stalls",
    "Spilled": "Spilled",
}
"""Columns of the lines' figures, the most wanted first, with their headings where there is little room."""
_MOST_COLUMNS = 3
"""Columns shown beside the source, where little room is left."""


def code_view(
    key: str, source: str, evaluation: Evaluation, diagnosis: Diagnosis | None = None
) -> dict[str, object]:
    """Return the source and the code of each kernel with its lines' figures; `key` tells the round shown."""
    by_kernel: dict[str, list[CodeListing]] = {}
    for listing in evaluation.code:
        by_kernel.setdefault(listing.kernel, []).append(listing)
    return {
        "key": key,
        "source": [[(kind, visible(text)) for kind, text in line] for line in highlight(source)],
        "kernels": [
            {
                "name": visible(function_name(kernel, source)),
                "listings": [_listing(one, function_name(kernel, source)) for one in listings],
                **_figures(evaluation.profile, kernel, diagnosis, source),
            }
            for kernel, listings in by_kernel.items()
        ],
    }


def _listing(listing: CodeListing, name: str) -> dict[str, object]:
    """Return the rows of a listing by member, which is smaller as JSON than row by row.

    The kernel has its name in the source. The compiler's name has up to 180 characters and recurs in each
    parameter.
    """
    note = listing.note
    try:
        rows = listing.rows()
    except ValueError as error:
        rows, note = (), f"The code cannot be shown: {error}."
    return {
        "language": visible(listing.language),
        "note": visible(note),
        "text": [visible(row.text.replace(listing.kernel, name)) for row in rows],
        "lines": [row.line for row in rows],
        "executions": [row.executions for row in rows],
    }


def _figures(
    profile: Profile | None, kernel: str, diagnosis: Diagnosis | None, source: str
) -> dict[str, object]:
    """Return the columns and the figures of a kernel's lines; the line to begin at, 0 for none."""
    none: dict[str, object] = {"columns": [], "figures": {}, "hottest": 0, "counts": ""}
    if profile is None:
        return none
    launches = tuple(one for one in profile.launches if one.kernel == kernel)
    found = heat(replace(profile, launches=launches), diagnosis, source)
    return _columns(found[0], profile) if found else none


def _columns(found: KernelHeat, profile: Profile) -> dict[str, object]:
    titles = [one.title for one in found.columns]
    shown = [titles.index(title) for title in _COLUMNS if title in titles][:_MOST_COLUMNS]
    return {
        "columns": [
            {"title": _COLUMNS[one.title], "what": f"{one.title}, {one.unit}: {one.what}"}
            for one in (found.columns[index] for index in shown)
        ],
        "figures": {
            number: {
                "cells": [(line.cells[index].text, round(line.cells[index].heat, 3)) for index in shown],
                "full": line.full,
            }
            for number, line in found.lines.items()
        },
        "hottest": found.hottest,
        "counts": profile.source.value,
    }
