"""SVG chart of a population: the speed of every kernel that passed, and of the fastest member, by epoch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from cutegen_nb.analysis.figures.quantity import times
from cutegen_nb.analysis.population.epochs import EpochSummary, epoch_summaries
from cutegen_nb.analysis.population.summary import PopulationRow, population_rows, speed_source
from cutegen_nb.core.round import Epoch
from cutegen_nb.core.session import Session
from cutegen_nb.report.layout.svg import FACE
from cutegen_nb.report.markup import Style, fill, pixels

_WIDTH, _HEIGHT = 720, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 24, 52, 40
"""Margins of the plotted area in pixels."""
_SPREAD = 0.6
"""Share of an epoch's width that its kernels are spread over, so that equal speeds lie side by side."""
_GOOD, _LINE = "#2f86c1", "#8a929b"
"""Colours of the lineage: they contrast with white and with near black."""
_TICKS = 5
"""Most steps of the axis of speeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axes:
    """Scale of the chart: epochs from left to right, speeds from bottom to top."""

    epochs: int
    """Number of the last epoch; epoch 0 holds the first kernel."""
    top: float
    """Largest speed of the axis."""

    def x(self, epoch: float) -> float:
        return _LEFT + (epoch + 0.5) * (_WIDTH - _LEFT - _RIGHT) / (self.epochs + 1)

    def y(self, speed: float) -> float:
        return _HEIGHT - _BOTTOM - speed / self.top * (_HEIGHT - _TOP - _BOTTOM)


def population_chart(session: Session, draft: Epoch | None = None) -> Markup:
    """Return the chart as an ``<svg>``, whose text takes the page's colour; empty where no kernel passed."""
    rows = [row for row in population_rows(session, draft) if row.speed is not None]
    if not rows:
        return Markup()
    step = _step(max(row.speed or 0.0 for row in rows))
    top = step * math.ceil(max(row.speed or 0.0 for row in rows) / step)
    axes = _Axes(epochs=max(row.epoch for row in rows), top=top)
    epochs = epoch_summaries(session, draft)
    return fill(
        "population_chart",
        Style.PAGE,
        title=f"Speed of the kernels of {session.name} by epoch",
        axis=f"speed against the first kernel, {speed_source(session)}",
        face=FACE,
        size=(_WIDTH, _HEIGHT),
        left=_LEFT,
        right=_WIDTH - _RIGHT,
        bottom=_HEIGHT - _BOTTOM,
        colors={"good": _GOOD, "line": _LINE},
        ticks=[(f"{tick * step:g}×", axes.y(tick * step)) for tick in range(round(top / step) + 1)],
        epochs=[(str(number), axes.x(number)) for number in _numbered(axes.epochs)],
        marks=_marks(rows, axes),
        best=_best(epochs, axes),
    )


def _step(largest: float) -> float:
    """Return a step of 1, 2 or 5 times a power of ten with which the axis has at most `_TICKS` steps."""
    least = max(largest, 1e-9) / _TICKS
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)


def _numbered(last: int) -> range:
    """Epochs whose numbers are written below the axis: all, or so many that they do not touch."""
    return range(0, last + 1, max(1, last // 20))


def _marks(rows: Sequence[PopulationRow], axes: _Axes) -> list[tuple[float, float, bool, str]]:
    """Return place, membership and description of each kernel."""
    made = []
    for epoch in range(axes.epochs + 1):
        of_epoch = [row for row in rows if row.epoch == epoch]
        width = _SPREAD / max(1, len(of_epoch))
        for place, row in enumerate(of_epoch):
            at = epoch + width * (place - (len(of_epoch) - 1) / 2)
            speed = row.speed or 0.0
            words = f"{row.label}, {row.strategy}: {times(speed)}, {row.outcome}"
            made.append((axes.x(at), axes.y(speed), bool(row.member_of), words))
    return made


def _best(epochs: Sequence[EpochSummary], axes: _Axes) -> tuple[str, list[tuple[float, float, str]]]:
    """Return the line through the fastest member after each epoch, and its figures with their places."""
    points = [(axes.x(0), axes.y(1.0), "")] + [
        (axes.x(epoch.number), axes.y(epoch.speed), times(epoch.speed))
        for epoch in epochs
        if epoch.speed is not None
    ]
    path = "L".join(f"{pixels(x)} {pixels(y)}" for x, y, _ in points)
    return f"M{path}", [(x, y - 10, words) for x, y, words in points if words]
