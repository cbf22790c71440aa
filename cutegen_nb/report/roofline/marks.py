"""Data points of a session's rounds for the roofline chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cutegen_nb.analysis.figures.quantity import share, times
from cutegen_nb.analysis.hardware.hierarchy import L2
from cutegen_nb.analysis.hardware.roofline import Roofline, place
from cutegen_nb.analysis.history.summary import parent_round, revision, roof_device
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session

MOST_SHOWN = 24
"""Most kernels in a chart, which draws a row for each."""
_NAME = 22
"""Most characters of a strategy's name beside the chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Kernel of one round in the chart."""

    number: int
    """Number of the round."""
    name: str
    """Label ``r2 vectorise-128``, shortened to fit."""
    result: str
    """Text at the right end of the row: share of the roof, or bytes over the least."""
    intensities: tuple[tuple[str, float], ...]
    """Arithmetic intensity in FLOP/B by memory level; only levels that were counted."""
    achieved: tuple[float, float] | None
    """Intensity and FLOP/s of a measured kernel; None without a time."""
    share: float | None
    """Floor ÷ time; None without a time."""
    above: str
    """Reason why the time is impossible, in a sentence; empty if it is possible."""
    came_from: int | None
    """Number of the parent's round; None if the parent is not in the chart."""
    approved: bool
    """True if the round was approved."""
    improved: bool
    """True if the round's kernel became the best."""

    def intensity(self) -> float | None:
        """Return the intensity by requests to global memory (the L2), else by any other level counted."""
        known = dict(self.intensities)
        return known.get(L2) or next(iter(known.values()), None)


def marks(session: Session) -> tuple[Mark, ...]:
    """Return the kernels that passed or were refused as above the roof, in order of the rounds."""
    found: list[Mark] = []
    for item in session.rounds:
        mark = _mark(session, item, {one.number for one in found})
        if mark is not None:
            found.append(mark)
    return tuple(found)


def shown(found: Sequence[Mark]) -> tuple[Mark, ...]:
    """Select the kernels that a chart has room for, in order of the rounds.

    Kept are the first, then the newest that became the best, then the newest of the rest.
    """
    if len(found) <= MOST_SHOWN:
        return tuple(found)
    ranked = sorted(found[1:], key=lambda mark: (mark.improved, mark.number), reverse=True)
    kept = {mark.number for mark in (found[0], *ranked[: MOST_SHOWN - 1])}
    return tuple(
        replace(mark, came_from=mark.came_from if mark.came_from in kept else None)
        for mark in found
        if mark.number in kept
    )


def _mark(session: Session, item: Round, drawn: set[int]) -> Mark | None:
    evaluation = item.evaluation
    if evaluation is None:
        return None
    roof = place(session.facts, roof_device(session), evaluation)
    point = roof.kernel
    if not (evaluation.passed or roof.above) or point is None or point.intensity <= 0:
        return None
    parent = parent_round(session, item)
    known = ((one.level, roof.intensity_at(one.level)) for one in roof.traffic)
    rate = point.achieved_flops_per_s
    return Mark(
        number=item.number,
        name=_name(item),
        result=_result(roof, approved=item.approved),
        intensities=tuple((level, value) for level, value in known if value),
        achieved=(point.intensity, rate) if rate else None,
        share=roof.sol_fraction if rate else None,
        above=roof.above,
        came_from=parent.number if parent and parent.number in drawn else None,
        approved=item.approved,
        improved=bool(item.approved and item.comparison and item.comparison.relation.is_better),
    )


def _name(item: Round) -> str:
    words = item.title
    # The chart's font has these characters only; others would be drawn as boxes, with warnings.
    plain = "".join(one for one in words.encode("latin-1", "replace").decode("latin-1") if one.isprintable())
    shown = plain if len(plain) <= _NAME else f"{plain[: _NAME - 1]}…"
    return f"{revision(item)} {shown}"


def _result(roof: Roofline, *, approved: bool) -> str:
    if roof.above:
        return "above: blocked"
    if roof.sol_fraction is not None:
        said = f"{share(roof.sol_fraction)} of roof"
    elif roof.moved_over_least:
        said = f"{times(roof.moved_over_least)} least bytes"
    else:
        said = ""
    return said if approved else f"{said} ○"
