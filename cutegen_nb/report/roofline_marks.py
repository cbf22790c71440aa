"""What the rounds of a session put into a roofline's picture: values, before anything is drawn."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.analysis.hierarchy import L2
from cutegen_nb.analysis.quantity import share, times
from cutegen_nb.analysis.roofline import Roofline, place
from cutegen_nb.analysis.summary import parent_round, revision
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session

_NAME = 22
"""Characters of a strategy's name that fit beside the picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One round's kernel."""

    number: int
    """Of the round."""
    name: str
    """``r2 vectorise-128``, shortened to fit."""
    result: str
    """What stands at the other end of its row: its share of the roof, or its bytes over the least."""
    intensities: tuple[tuple[str, float], ...]
    """FLOP a byte by memory; only those that were counted."""
    achieved: tuple[float, float] | None
    """Intensity and FLOP/s of a measured kernel; None without a time, so that no rate is pretended."""
    share: float | None
    """Floor ÷ time; None without a time."""
    above: str
    """Why it cannot be, in a sentence; empty where it can. Such a kernel blocks."""
    came_from: int | None
    """Number of the round it was made from, where that one is in the picture."""
    approved: bool
    """Whether it was approved."""

    def intensity(self) -> float | None:
        """By the requests to global memory, or by whatever else was counted."""
        known = dict(self.intensities)
        return known.get(L2) or next(iter(known.values()), None)


def marks(session: Session) -> tuple[Mark, ...]:
    """The kernels that passed, and those that were refused as above the roof, in order of the rounds."""
    found: list[Mark] = []
    for item in session.rounds:
        mark = _mark(session, item, {one.number for one in found})
        if mark is not None:
            found.append(mark)
    return tuple(found)


def _mark(session: Session, item: Round, drawn: set[int]) -> Mark | None:
    evaluation = item.evaluation
    if evaluation is None:
        return None
    roof = place(session.facts, session.device, evaluation)
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
    )


def _name(item: Round) -> str:
    words = item.strategy.name if item.strategy else "first kernel"
    # The picture's font holds no more than this; other characters would be boxes and warnings.
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
