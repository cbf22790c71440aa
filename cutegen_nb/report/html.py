"""A session as one HTML file: no script, no request, readable with no kernel and no network."""

from __future__ import annotations

import base64
from pathlib import Path

from cutegen_nb.analysis.admission import admission_text
from cutegen_nb.analysis.quantity import count, moment, scaled
from cutegen_nb.analysis.summary import floor, hardware, outcome, revision, rows, simulated
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.report import roofline_plot, rounds
from cutegen_nb.report.code import listing
from cutegen_nb.report.lineage_svg import lineage_section
from cutegen_nb.report.markup import Style, badge, folded, safe
from cutegen_nb.report.page import check_target, fact_list, page, write_whole


def write_report(session: Session, path: str) -> None:
    """Write the page to `path`, whole or not at all.

    Raises UsageError when the folder does not exist or `path` is one, StoreError when it cannot be written.
    """
    target = check_target(path, f"{session.name}.html")
    write_whole(render(session), target)


def render(session: Session) -> str:
    """The whole page."""
    return page(
        f"{session.name}: kernel refinement report",
        f"{_header(session)}<main>{_rounds_table(session)}{lineage_section(session)}{_roofline(session)}"
        f"{''.join(_round(session, item) for item in session.rounds)}{_problem(session)}</main>"
        f"{_footer(session)}",
    )


def _header(session: Session) -> str:
    stopped = f"<p>Ended: {safe(session.stopped)}</p>" if session.stopped else ""
    return (
        f'<header><p class="kicker">Kernel refinement report</p><h1>{safe(session.name)}</h1>'
        f'<p class="lead">{safe(outcome(session))}</p>{stopped}{_notice(session)}{_facts(session)}</header>'
    )


def _notice(session: Session) -> str:
    if not simulated(session):
        return f'<p class="notice"><b>Measured</b> on {safe(session.device.name)}.</p>'
    return (
        '<p class="notice"><b>Simulated counts.</b> Kernels were compiled for '
        f"{safe(session.device.architecture)} and executed by a simulator. Instructions, memory sectors and "
        "errors are exact; no kernel was timed, and no figure here is a kernel’s time.</p>"
    )


def _facts(session: Session) -> str:
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
        ("Floor", floor(session)),
        ("Device", _device(session)),
        ("Author", session.author),
        ("Recorded", _recorded(session)),
    ]
    notes = (*facts.warnings, admission_text(facts.admission))
    pairs += [("Note", note) for note in notes if note]
    return fact_list(pairs)


def _device(session: Session) -> str:
    device = session.device
    ceilings = f"{scaled(device.bandwidth_bytes_per_s, 'B/s')}, {device.source}"
    if simulated(session):
        return f"simulator, {device.architecture}; roofs drawn for {hardware(session)} ({ceilings})"
    driver = f", driver {device.driver}" if device.driver else ""
    return f"{device.name} ({device.architecture}{driver}; {ceilings})"


def _recorded(session: Session) -> str:
    where = f" from {Path(session.problem.path).name}" if session.problem.path else ""
    return f"{moment(session.created_at)}{where}"


def _amounts(flops: int, least_bytes: int) -> str:
    return f"{scaled(flops, 'FLOP')}, at least {scaled(least_bytes, 'B')} ({count(least_bytes)} bytes)"


def _shapes(graph: Graph) -> str:
    given = ", ".join(_shape(value.spec.shape) for value in graph.inputs) or "no tensors"
    made = ", ".join(_shape(spec.shape) for spec in graph.output_specs)
    return f"{given} → {made}"


def _shape(extents: tuple[int, ...]) -> str:
    return " × ".join(f"{extent:,}" for extent in extents) or "scalar"


def _rounds_table(session: Session) -> str:
    if not session.rounds:
        why = f" {session.stopped}" if session.stopped else " Run the session to fill this page."
        return f"<h2>Rounds</h2><p>No round has finished.{safe(why)}</p>"
    return f"<h2>Rounds</h2>{rounds.overview(session, style=Style.PAGE)}"


def _roofline(session: Session) -> str:
    words = "".join(f"<li>{safe(line)}</li>" for line in roofline_plot.describe(session))
    light = roofline_plot.png(session)
    dark = roofline_plot.png(session, dark=True)
    picture = ""
    if light and dark:
        picture = (
            f'<figure><picture><source media="(prefers-color-scheme: dark)" srcset="{_data(dark)}">'
            f'<img src="{_data(light)}" width="1350" height="780" '
            'alt="Roofline of the device with the problem and each passing kernel; the same in words below.">'
            f"</picture><figcaption>{safe(roofline_plot.caption(session))}</figcaption></figure>"
        )
    return f"<h2>Roofline</h2>{picture}{folded(Style.PAGE, 'The roofline in words', f'<ul>{words}</ul>')}"


def _data(image: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


def _round(session: Session, item: Round) -> str:
    row = next(row for row in rows(session) if row.revision == revision(item))
    best = f" {badge(Style.PAGE, 'good', 'best')}" if row.best else ""
    verdict = badge(Style.PAGE, "good" if row.passed else "bad", row.verdict)
    first = "first kernel" if item.number == 0 else ""
    name = " · ".join(part for part in (row.revision, row.strategy or first) if part)
    body = rounds.section(session, item, style=Style.PAGE)
    opened = " open" if row.best or item is session.rounds[-1] else ""
    said = f' <span class="muted">{safe(row.reason)}</span>' if row.reason and not opened else ""
    return (
        f'<section id="{row.revision}"><details class="round"{opened}>'
        f"<summary><h2>{safe(name)} {verdict}{best}</h2>{said}</summary>{body}</details></section>"
    )


def _problem(session: Session) -> str:
    source = f'<div class="card">{listing(session.problem.source, Style.PAGE)}</div>'
    count_lines = len(session.problem.source.splitlines())
    return f"<h2>Reference</h2>{folded(Style.PAGE, f'Source of the problem, {count_lines} lines', source)}"


def _footer(session: Session) -> str:
    return (
        f"<footer><p>Session {safe(session.name)}, problem digest "
        f"<code>{session.problem.digest[:16]}</code>, {len(session.rounds)} of at most "
        f"{session.budget.rounds} rounds. Written by cutegen-nb.</p></footer>"
    )
