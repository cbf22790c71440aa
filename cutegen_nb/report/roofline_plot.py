"""The roofline of a session as a picture and in words.

A simulated kernel has no speed: it is drawn on the roof at its traffic, the most it could reach.
"""

from __future__ import annotations

import io
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from cutegen_nb.analysis import quantity
from cutegen_nb.analysis.quantity import scaled, share, times
from cutegen_nb.analysis.roofline import Roofline, RooflinePoint, place
from cutegen_nb.analysis.summary import floor, hardware, parent_round, revision, simulated
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Bound

_MARKERS = "osD^vPX*h<>p"
_OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_SAME_PLACE = 0.03
"""Points closer than this, in decades, are taken to be at the same place."""
_LARGEST = 12
"""Size in typographic points of the first marker at a place."""
_DPI = 150

_Problem = tuple[float, str, str]
"""Intensity, words and line style of a problem at one size."""


@dataclass(frozen=True, slots=True)
class _Theme:
    back: str
    ink: str
    faint: str


_LIGHT = _Theme(back="#ffffff", ink="#1b1f24", faint="#8c959f")
_DARK = _Theme(back="#1c2126", ink="#e6e6e6", faint="#7d8790")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """One round's kernel in the picture."""

    number: int
    label: str
    x: float
    y: float
    came_from: int | None
    approved: bool
    stacked: int


_drawn: dict[tuple[object, ...], bytes] = {}
_DRAWN_KEPT = 16
_drawing = threading.Lock()


def png(session: Session, *, dark: bool = False) -> bytes | None:
    """The picture, 1350 × 780 pixels on a solid ground; None when nothing computes in floating point.

    One that was drawn before is given again: a notebook shows the same one in its panel and its record, and
    drawing takes a third of a second. From any thread; one draws at a time, for matplotlib's sake.
    """
    roof = place(session.facts, session.device)
    if not roof.problem.intensity or not roof.bandwidth_bytes_per_s:
        return None
    marks = _marks(session)
    peaks = tuple(sorted(session.device.peak_flops.items()))
    key = (session.problem.digest, session.device.name, roof.bandwidth_bytes_per_s, peaks, *marks, dark)
    with _drawing:
        if key not in _drawn:
            _drawn[key] = _draw(session, roof, marks, _DARK if dark else _LIGHT)
        image = _drawn[key]
        while len(_drawn) > _DRAWN_KEPT:
            del _drawn[next(iter(_drawn))]
    return image


def _draw(session: Session, roof: Roofline, marks: Sequence[_Mark], theme: _Theme) -> bytes:
    figure = Figure(figsize=(9, 5.2), dpi=_DPI, facecolor=theme.back, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(facecolor=theme.back)
    _frame(axes, session, roof, marks, theme)
    problems = _problems(session, roof)
    _roofs(axes, roof, marks, problems, theme)
    _problem_lines(axes, problems, theme)
    _trajectory(axes, marks, theme)
    _points(axes, marks, theme)
    target = io.BytesIO()
    figure.savefig(target, format="png", dpi=_DPI, metadata={"Software": None})
    return target.getvalue()


def describe(session: Session) -> tuple[str, ...]:
    """The picture in sentences, for who cannot see it and for a terminal."""
    roof = place(session.facts, session.device)
    device = session.device
    if not roof.bandwidth_bytes_per_s:
        return (f"There is no roofline for {hardware(session)}: {device.source}.",)
    said = [f"{hardware(session)}: bandwidth {scaled(roof.bandwidth_bytes_per_s, 'B/s')} ({device.source})."]
    for item in roof.ceilings:
        note = f", {item.note}" if item.note else ""
        peak = scaled(item.flops_per_s, "FLOP/s")
        said.append(f"{item.pipe}: {peak}, ridge point at {quantity.figure(item.ridge)} FLOP/B{note}.")
    said.append(_problem_words(session, roof))
    for item_round in session.rounds:
        evaluation = item_round.evaluation
        if evaluation and evaluation.passed:
            placed = place(session.facts, device, evaluation)
            if placed.kernel:
                said.append(f"{revision(item_round)}: {_kernel_words(placed, placed.kernel)}")
    return tuple(said)


def caption(session: Session) -> str:
    """What the picture's signs mean."""
    said = "Kernels at the same place are drawn inside each other; hollow ones were not approved."
    notes = {item.note for item in place(session.facts, session.device).ceilings if item.note}
    return " ".join([said, *(f"* {note}." for note in sorted(notes))])


def _problem_words(session: Session, roof: Roofline) -> str:
    if not session.facts.full.flops:
        return f"The problem does no floating-point arithmetic. Floor: {floor(session)}."
    side = "memory" if roof.bound is Bound.MEMORY else "compute"
    intensity = quantity.figure(roof.problem.intensity)
    return (
        f"The problem at full size has at most {intensity} FLOP/B and is bound by {side}. "
        f"Floor: {floor(session)}."
    )


def _kernel_words(roof: Roofline, point: RooflinePoint) -> str:
    moved = (
        f"{times(roof.moved_over_least)} the least bytes" if roof.moved_over_least else "bytes not counted"
    )
    if point.simulated:
        return f"{quantity.figure(point.intensity)} FLOP/B, {moved} (simulated counts)."
    if point.achieved_flops_per_s is None:
        return f"{quantity.figure(point.intensity)} FLOP/B, {moved}."
    reached = scaled(point.achieved_flops_per_s, "FLOP/s")
    above = point.achieved_flops_per_s > point.attainable_flops_per_s
    warning = " This is above the roof: a count or a time is wrong." if above else ""
    light = share(roof.sol_fraction) if roof.sol_fraction is not None else "an unknown share"
    return f"{reached} measured, {light} of the speed of light.{warning}"


def _marks(session: Session) -> list[_Mark]:
    marks: list[_Mark] = []
    for item in session.rounds:
        evaluation = item.evaluation
        if evaluation is None or not evaluation.passed:
            continue
        roof = place(session.facts, session.device, evaluation)
        if roof.kernel is None or roof.kernel.intensity <= 0:
            continue
        x = roof.kernel.intensity
        y = roof.kernel.achieved_flops_per_s or roof.kernel.attainable_flops_per_s
        parent = parent_round(session, item)
        marks.append(
            _Mark(
                number=item.number,
                label=_label(
                    revision(item), item.strategy.name if item.strategy else "", roof, item.approved
                ),
                x=x,
                y=y,
                came_from=parent.number if parent else None,
                approved=item.approved,
                stacked=sum(1 for other in marks if _near(other.x, x) and _near(other.y, y)),
            )
        )
    return marks


def _label(name: str, strategy: str, roof: Roofline, approved: bool) -> str:  # noqa: FBT001
    words = [name]
    if strategy:
        # The font holds no more than this; other characters would be boxes and warnings.
        words.append(strategy[:28].encode("latin-1", "replace").decode("latin-1"))
    if roof.sol_fraction is not None:
        words.append(f"· {share(roof.sol_fraction)} of roof")
    elif roof.moved_over_least:
        words.append(f"· {times(roof.moved_over_least)} least bytes")
    if not approved:
        words.append("(not approved)")
    return " ".join(words)


def _near(one: float, other: float) -> bool:
    return abs(math.log10(one / other)) < _SAME_PLACE


def _frame(axes: Axes, session: Session, roof: Roofline, marks: Sequence[_Mark], theme: _Theme) -> None:
    top = max((item.flops_per_s for item in roof.ceilings), default=roof.problem.attainable_flops_per_s)
    ridge = max((item.ridge for item in roof.ceilings), default=roof.problem.intensity)
    xs = [roof.problem.intensity, ridge, *(mark.x for mark in marks)]
    low, high = min(xs) / 4, max(xs) * 8
    ys = [roof.bandwidth_bytes_per_s * low, *(mark.y / 2 for mark in marks)]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(min(ys), max(top, *(mark.y for mark in marks), 0.0) * 4)
    axes.set_xlabel("Arithmetic intensity (the problem’s FLOPs ÷ bytes moved), FLOP/B", color=theme.ink)
    axes.set_ylabel("FLOP/s", color=theme.ink)
    axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
    measured = "highest possible at the simulated traffic" if simulated(session) else "measured"
    axes.set_title(
        f"Roofline of {hardware(session)}; kernels: {measured}", color=theme.ink, fontsize=11, loc="left"
    )
    axes.tick_params(colors=theme.ink, which="both", labelsize=9)
    axes.grid(visible=True, which="major", color=theme.faint, alpha=0.25, linewidth=0.6)
    for side, spine in axes.spines.items():
        spine.set_color(theme.faint)
        spine.set_visible(side in {"left", "bottom"})


def _roofs(
    axes: Axes, roof: Roofline, marks: Sequence[_Mark], problems: Sequence[_Problem], theme: _Theme
) -> None:
    low, high = axes.get_xlim()
    top = max((item.ridge for item in roof.ceilings), default=high)
    axes.plot(
        [low, top],
        [roof.bandwidth_bytes_per_s * low, roof.bandwidth_bytes_per_s * top],
        color=theme.ink,
        lw=1.8,
    )
    lines = [x for x, _, _ in problems]
    middle = _clear(low, top, [*lines, *(mark.x for mark in marks)])
    axes.annotate(
        f"DRAM {scaled(roof.bandwidth_bytes_per_s, 'B/s')}",
        (middle, roof.bandwidth_bytes_per_s * middle),
        xytext=(-6, 6),
        textcoords="offset points",
        color=theme.ink,
        fontsize=9,
        rotation=_slope(axes),
        rotation_mode="anchor",
        ha="center",
    )
    ridges = [item.ridge for item in roof.ceilings]
    for item in roof.ceilings:
        axes.plot([item.ridge, high], [item.flops_per_s] * 2, color=theme.ink, lw=1.8)
        axes.plot([item.ridge] * 2, [axes.get_ylim()[0], item.flops_per_s], color=theme.faint, lw=0.8, ls=":")
        axes.annotate(
            f"{item.pipe} {scaled(item.flops_per_s, 'FLOP/s')}{' *' if item.note else ''}",
            (_clear(item.ridge, high, [*lines, *ridges, high * 0.7]), item.flops_per_s),
            xytext=(0, 4),
            textcoords="offset points",
            color=theme.ink,
            fontsize=9,
            ha="center",
        )


def _clear(low: float, high: float, taken: Sequence[float]) -> float:
    """A place between `low` and `high`, both well away, that is farthest from what is drawn already."""
    places: list[float] = [low * (high / low) ** (step / 20) for step in range(4, 17)]
    return max(places, key=lambda x: min(abs(math.log(x / other)) for other in taken))


def _slope(axes: Axes) -> float:
    """Angle of the bandwidth line on the page, for its label; the axes fill about 8.2 × 4.3 inches."""
    (low, high), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    return math.degrees(math.atan2(4.3 / math.log10(top / bottom), 8.2 / math.log10(high / low)))


def _problems(session: Session, roof: Roofline) -> list[_Problem]:
    """The most intensity a kernel can have, at the full size and at the size the simulator ran."""
    scaled_size = session.facts.scaled
    found: list[_Problem] = [(roof.problem.intensity, "problem, full size", "--")]
    if simulated(session) and scaled_size.flops and scaled_size.least_bytes:
        intensity = scaled_size.flops / scaled_size.least_bytes
        if not _near(intensity, roof.problem.intensity):
            found.append((intensity, "problem, size run", "-."))
    return found


def _problem_lines(axes: Axes, problems: Sequence[_Problem], theme: _Theme) -> None:
    low, high = axes.get_xlim()
    for line, (x, words, dash) in enumerate(problems):
        axes.axvline(x, color=theme.faint, lw=1.2, ls=dash, zorder=1)
        leftwards = x > math.sqrt(low * high)
        axes.annotate(
            words,
            (x, axes.get_ylim()[1]),
            xytext=(-4 if leftwards else 4, -2 - 12 * line),
            textcoords="offset points",
            color=theme.ink,
            fontsize=8.5,
            va="top",
            ha="right" if leftwards else "left",
        )


def _trajectory(axes: Axes, marks: Sequence[_Mark], theme: _Theme) -> None:
    """An arrow from each kernel to the one made from it, where both are at different places."""
    by_number = {mark.number: mark for mark in marks}
    for mark in marks:
        origin = by_number.get(mark.came_from) if mark.came_from is not None else None
        if origin is None or (_near(origin.x, mark.x) and _near(origin.y, mark.y)):
            continue
        arrow = {"arrowstyle": "-|>", "color": theme.faint, "shrinkA": 7, "shrinkB": 7, "lw": 1.2}
        bend = {"connectionstyle": "arc3,rad=0.25"}
        axes.annotate("", (mark.x, mark.y), (origin.x, origin.y), arrowprops={**arrow, **bend}, zorder=2)


def _points(axes: Axes, marks: Sequence[_Mark], theme: _Theme) -> None:
    handles = []
    for index, mark in enumerate(marks):
        color = _OKABE_ITO[index % len(_OKABE_ITO)]
        shape = _MARKERS[index % len(_MARKERS)]
        face = color if mark.approved else theme.back
        handles += axes.plot(
            [], [], shape, color=color, mfc=face, mec=color, mew=1.6, ms=8, ls="", label=mark.label
        )
        axes.plot(
            mark.x,
            mark.y,
            shape,
            mfc=face,
            mec=color,
            mew=1.6,
            # Later kernels at the same place are drawn smaller, on top: all stay visible where they are.
            ms=max(_LARGEST - 3 * mark.stacked, 3),
            zorder=4 + mark.stacked / 100,
        )
        if not mark.stacked:
            here = [other for other in marks if _near(other.x, mark.x) and _near(other.y, mark.y)]
            axes.annotate(
                ", ".join(f"r{other.number}" for other in here),
                (mark.x, mark.y),
                xytext=(9, -14),
                textcoords="offset points",
                color=theme.ink,
                fontsize=9,
                zorder=5,
            )
    if not handles:
        return
    legend = axes.legend(
        handles=handles, loc="lower right", fontsize=8.5, facecolor=theme.back, edgecolor=theme.faint
    )
    for text in legend.get_texts():
        text.set_color(theme.ink)
        text.set_parse_math(False)
