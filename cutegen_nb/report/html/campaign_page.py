"""Page of a campaign as one HTML file that needs no script, network or kernel."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from cutegen_nb.analysis.campaign.paired import VariantComparison, compare_variants
from cutegen_nb.analysis.campaign.problem_result import ProblemResult
from cutegen_nb.analysis.campaign.totals import CampaignTotals, totals_of
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
from cutegen_nb.analysis.figures.quantity import interval, moment, share, times
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.search.campaign import CampaignRecord
from cutegen_nb.report.html.campaign_chart import chart
from cutegen_nb.report.html.page import write_whole
from cutegen_nb.report.markup import Style, fill

_UNSET = "none"
"""Word of the record for an option that was not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignPage:
    """Content of the page of a campaign."""

    record: CampaignRecord
    """Name, settings, limits and versions."""
    results: Sequence[ProblemResult]
    """Row of each problem, without a change."""
    variants: Sequence[tuple[str, Sequence[ProblemResult]]] = ()
    """Name and rows of each variant, over the same problems."""
    chosen: str = ""
    """Number of chosen files and of all, in words; empty if all were chosen."""
    device: Device
    """Device of the evaluations."""
    target: str = ""
    """GPU that times are estimated for where none were measured."""
    ending: str = ""
    """Reason why the campaign stopped before its end; empty otherwise."""
    folder: Path
    """Folder of the sessions' own reports, to which the page links."""


def write_campaign_page(page: CampaignPage, target: Path) -> None:
    """Write the page to `target` atomically. Raises StoreError if it cannot be written."""
    write_whole(render(page, target.parent), target)


def render(page: CampaignPage, beside: Path) -> Markup:
    """Return the whole page; links to the sessions' reports are relative to the folder `beside`."""
    totals = totals_of(page.results)
    compared = [compare_variants(name, page.results, changed) for name, changed in page.variants]
    return fill(
        "campaign_page",
        Style.PAGE,
        name=page.record.name,
        lead=lead(totals),
        ending=page.ending,
        notice=_notice(page),
        no_ratio="" if totals.baselines else NO_RATIO,
        facts=_facts(page),
        totals=_table(totals_table(totals)),
        speedups=_table(speedups_table(totals)) if totals.baselines else None,
        chart=chart(page.results),
        problems=_problems(page.results, page.folder, beside),
        variants=_table(_variants(totals, compared, page.variants)) if compared else None,
        variants_note=variants_note(compared) if compared else "",
        pairs=_table(pairs_table(compared)) if compared else None,
        of_variants=[
            (name, _problems(changed, page.folder / name, beside)) for name, changed in page.variants
        ],
    )


def _notice(page: CampaignPage) -> tuple[str, str]:
    """Return the origin of the times in two parts, the first of which stands out."""
    if page.device.kind is not DeviceKind.SIMULATOR:
        return "Measured", f"on {page.device.name}."
    if any(item.latency_ms is not None for item in page.results):
        return "Judged on the simulator.", "The times were measured on another machine and taken in."
    return "Simulated.", ""


def _variants(
    base: CampaignTotals,
    compared: Sequence[VariantComparison],
    variants: Sequence[tuple[str, Sequence[ProblemResult]]],
) -> FigureTable:
    return variants_table(
        base, [(one, totals_of(changed)) for one, (_, changed) in zip(compared, variants, strict=True)]
    )


def lead(totals: CampaignTotals) -> str:
    """Sum the campaign up in a sentence or two."""
    correct = f"{totals.correct} of {totals.run} problems have a correct kernel"
    left = totals.problems - totals.run
    unrun = f"; {left} {'is' if left == 1 else 'are'} not finished" if left else ""
    of_baselines = [
        f"{_geometric(one.geometric_mean, one.geometric_interval)} the speed of {one.name}"
        for one in totals.baselines
        if one.geometric_mean is not None
    ]
    speed = f" The correct ones reach {', '.join(of_baselines)} (geometric mean)." if of_baselines else ""
    if not speed and totals.median_estimated_sol is not None:
        middle = share(totals.median_estimated_sol)
        speed = f" Their median estimated share of the roof is {middle}; none was timed."
    return f"{correct}{unrun}.{speed}"


def _geometric(mean: float, spread: tuple[float, float] | None) -> str:
    return interval(mean, *spread) if spread else times(mean)


def _facts(page: CampaignPage) -> list[tuple[str, str]]:
    record = page.record
    limits = [f"{option} {value}" for option, value in record.budgets.items() if value != _UNSET]
    names = {
        "--author": "Author", "--device": "Device", "--baseline": "Baselines", "--library": "Left to PyTorch",
        "--schedule": "Schedule", "--prompts": "Own templates",
    }  # fmt: skip
    settings = [
        (names[option], value)
        for option, value in record.settings.items()
        if option in names and value != _UNSET
    ]
    is_simulated = page.device.kind is DeviceKind.SIMULATOR
    # A simulator times neither a kernel nor a baseline.
    settings = [(name, value) for name, value in settings if name != "Baselines" or not is_simulated]
    return [
        *((("Chosen", page.chosen),) if page.chosen else ()),
        *settings,
        *((("Estimates for", page.target),) if is_simulated else ()),
        ("Limits", ", ".join(limits)),
        ("Begun", moment(record.created_at)),
        ("Versions", ", ".join(f"{name} {version}" for name, version in record.environment.items())),
    ]


def _table(table: FigureTable) -> dict[str, object]:
    return {
        "columns": [(name, place in table.figures) for place, name in enumerate(table.heading)],
        "rows": table.rows,
    }


def _problems(results: Sequence[ProblemResult], folder: Path, beside: Path) -> dict[str, object]:
    """Return the table of problems; a row maps headings to cells, and ``address`` to its session's report."""
    table = problems_table(results)
    columns = [
        (name, place in table.figures)
        for place, name in enumerate(table.heading)
        # These two stand below the problem's name.
        if name not in {"class", "ended"}
    ]
    rows = [
        dict(zip(table.heading, row, strict=True)) | {"address": _link(item, folder, beside)}
        for item, row in zip(results, table.rows, strict=True)
    ]
    return {"columns": columns, "rows": rows}


def _link(item: ProblemResult, folder: Path, beside: Path) -> str:
    """Return the relative address of a session's own report; empty if there is none."""
    report = folder / f"{item.session}.html"
    if not item.session or not report.is_file():
        return ""
    return Path(os.path.relpath(report, beside)).as_posix()
