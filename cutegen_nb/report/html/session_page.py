"""Report of a session as one HTML file that needs no script, network or kernel."""

from __future__ import annotations

import base64
from pathlib import Path

from markupsafe import Markup

from cutegen_nb.analysis.figures.quantity import count, moment, scaled
from cutegen_nb.analysis.history.summary import floor, hardware, outcome, roof_device, rows, simulated
from cutegen_nb.analysis.problem.admission import admission_text
from cutegen_nb.analysis.tables.ledgers import ledger_tables
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.library import library_option
from cutegen_nb.core.session import Session
from cutegen_nb.report.html import rounds
from cutegen_nb.report.html.code import listing
from cutegen_nb.report.html.counts import plain_tables
from cutegen_nb.report.html.lineage import lineage_section
from cutegen_nb.report.html.page import check_target, write_whole
from cutegen_nb.report.html.population import population_section
from cutegen_nb.report.html.whole_rounds import whole_rounds
from cutegen_nb.report.markup import Style, extents, fill
from cutegen_nb.report.roofline import plot


def write_report(session: Session, path: str, whole: str = "") -> None:
    """Write the page to `path` atomically; `whole` names the rounds with all evidence, as for `whole_rounds`.

    Raises UsageError if the folder does not exist or `path` is a folder, StoreError if it cannot be written.
    """
    target = check_target(path, f"{session.name}.html")
    write_whole(render(session, whole), target)


def render(session: Session, whole: str = "") -> Markup:
    """Return the whole page."""
    shown, summaries = whole_rounds(session, whole), rows(session)
    return fill(
        "session_page",
        Style.PAGE,
        session=session,
        outcome=outcome(session),
        is_simulated=simulated(session),
        facts=_facts(session),
        overview=rounds.overview(session, style=Style.PAGE),
        population=population_section(session),
        lineage=lineage_section(session),
        ledgers=plain_tables(ledger_tables(session), Style.PAGE),
        roofline=plot.describe(session),
        pictures=_pictures(session),
        caption=plot.caption(session),
        rounds=[
            (
                row,
                rounds.section(session, item, style=Style.PAGE)
                if item.number in shown
                else rounds.brief_section(session, item, row),
            )
            for row, item in zip(summaries, session.rounds, strict=True)
        ],
        whole=len(shown),
        source=listing(session.problem.source, Style.PAGE),
    )


def _pictures(session: Session) -> tuple[str, ...]:
    """Return the light and the dark roofline as ``data:`` addresses; empty if there is none."""
    images = (plot.png(session), plot.png(session, dark=True))
    return tuple(f"data:image/png;base64,{base64.b64encode(one).decode()}" for one in images if one)


def _facts(session: Session) -> list[tuple[str, str]]:
    facts = session.facts
    problem = f"{session.problem.name}, {facts.workload_class.value}, {facts.dtype}"
    pairs = [
        ("Problem", problem),
        ("Full size", f"{_shapes(facts.full.graph)}; {_amounts(facts.full.flops, facts.full.least_bytes)}"),
    ]
    if simulated(session) and facts.scaled.rewrites:
        size = f"{_shapes(facts.scaled.graph)}; {_amounts(facts.scaled.flops, facts.scaled.least_bytes)}"
        changed = ", ".join(
            f"{item.full:,} → {item.scaled:,} (line {item.line})" for item in facts.scaled.rewrites
        )
        pairs += [("Size run", size), ("Scaled by", changed)]
    pairs += [
        *((("Left to PyTorch", library_option(session.problem.library)),) if session.problem.library else ()),
        ("Floor", floor(session)),
        ("Device", _device(session)),
        ("Author", session.author),
        ("Recorded", _recorded(session)),
    ]
    notes = (*facts.warnings_on(session.device.kind), admission_text(facts.admission))
    return pairs + [("Note", note) for note in notes if note]


def _device(session: Session) -> str:
    device = roof_device(session)
    ceilings = f"{scaled(device.bandwidth_bytes_per_s, 'B/s')}, {device.source}"
    if simulated(session):
        return f"simulator, {session.device.architecture}; roofs drawn for {hardware(session)} ({ceilings})"
    driver = f", driver {device.driver}" if device.driver else ""
    return f"{device.name} ({device.architecture}{driver}; {ceilings})"


def _recorded(session: Session) -> str:
    where = f" from {Path(session.problem.path).name}" if session.problem.path else ""
    return f"{moment(session.created_at)}{where}"


def _amounts(flops: int, least_bytes: int) -> str:
    return f"{scaled(flops, 'FLOP')}, at least {scaled(least_bytes, 'B')} ({count(least_bytes)} bytes)"


def _shapes(graph: Graph) -> str:
    given = ", ".join(extents(value.spec.shape) for value in graph.inputs) or "no tensors"
    made = ", ".join(extents(spec.shape) for spec in graph.output_specs)
    return f"{given} → {made}"
