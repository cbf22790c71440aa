"""Measured kernels of a session under their roofs, as values that the panel draws and plays."""

from __future__ import annotations

from cutegen_nb.analysis.figures.quantity import duration, scaled
from cutegen_nb.analysis.hardware.roofline import Roofline, place
from cutegen_nb.analysis.history.summary import roof_device
from cutegen_nb.analysis.tables.count_changes import count_changes
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.session import Session
from cutegen_nb.report.markup import visible
from cutegen_nb.report.roofline.marks import Mark, marks

_COUNTS = 8
"""Counters told of a kernel at most; the tab Counts has all of them."""
_MARGIN = 4.0
"""Factor that the axes reach beyond what is drawn."""


def chart(session: Session) -> dict[str, object] | None:
    """Return roofs, problem and measured kernels in order of the rounds; None where no kernel was timed."""
    roof = place(session.facts, roof_device(session))
    points = [_point(session, mark, mark.achieved) for mark in marks(session) if mark.achieved]
    if not points or not roof.problem.intensity or not roof.bandwidth_bytes_per_s:
        return None
    problem = (roof.problem.intensity, roof.problem.attainable_flops_per_s)
    drawn = [problem, *(mark.achieved for mark in marks(session) if mark.achieved)]
    ridges = [(one.ridge, one.flops_per_s) for one in roof.ceilings]
    every = [*drawn, *ridges]
    return {
        "x": [min(x for x, _ in every) / _MARGIN, max(x for x, _ in every) * _MARGIN],
        "y": [min(y for _, y in every) / _MARGIN, max(y for _, y in every) * _MARGIN],
        **_roofs(roof),
        "problem": {"x": problem[0], "y": problem[1], "words": f"floor {duration(roof.floor_ms / 1e3)}"},
        "points": points,
    }


def _roofs(roof: Roofline) -> dict[str, object]:
    """Return the slanted roofs with their bandwidth and the flat ones with their rate."""
    slanted = [
        {
            "name": one.name,
            "rate": one.bandwidth_bytes_per_s,
            "words": f"{one.name} {scaled(one.bandwidth_bytes_per_s, 'B/s')}",
        }
        for one in roof.levels
    ]
    flat = [
        {"rate": one.flops_per_s, "words": f"{one.pipe} {scaled(one.flops_per_s, 'FLOP/s')}"}
        for one in roof.ceilings
    ]
    return {"levels": slanted, "ceilings": flat}


def _point(session: Session, mark: Mark, at: tuple[float, float]) -> dict[str, object]:
    evaluation = session.rounds[mark.number].evaluation
    return {
        "round": mark.number,
        "name": visible(mark.name),
        "x": at[0],
        "y": at[1],
        "from": -1 if mark.came_from is None else mark.came_from,
        "approved": mark.approved,
        "above": visible(mark.above),
        "words": [visible(mark.result), *(_figures(evaluation) if evaluation else ())],
    }


def _figures(evaluation: Evaluation) -> list[str]:
    """Return time and counters of a kernel, each with its name."""
    timing, profile = evaluation.timing, evaluation.profile
    time = [f"Latency {duration(timing.median_ms / 1e3)}"] if timing else []
    counts = count_changes(profile, None) if profile else ()
    return [*time, *(f"{one.title} {one.after}" for one in counts[:_COUNTS])]
