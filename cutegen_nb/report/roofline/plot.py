"""Roofline chart of a session as PNG: roofs above, a row for each kernel below.

A simulated kernel has no speed: its row places it by FLOP/B alone, and no point stands among the roofs. A
measured kernel stands among the roofs, and its row shows its share of the problem's floor.
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
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FuncFormatter, NullLocator, PercentFormatter

from cutegen_nb.analysis.figures.quantity import duration, figure, scaled
from cutegen_nb.analysis.hardware.hierarchy import DRAM, L2, SHARED
from cutegen_nb.analysis.hardware.roofline import Roofline, place
from cutegen_nb.analysis.history.summary import hardware, roof_device, simulated
from cutegen_nb.core.session import Session
from cutegen_nb.report.roofline.caption import caption, describe
from cutegen_nb.report.roofline.marks import Mark, marks, shown
from cutegen_nb.report.roofline.small_png import smaller

__all__ = ["caption", "describe", "png"]

_WIDTH, _DPI = 7.5, 180
"""Width in inches and resolution: 1350 pixels. Shown 700 pixels wide, 9 points are a little under 12
pixels."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 1.95, 1.32, 0.36, 1.0
"""Margins in inches: row names, ceilings and results, title, axis and legend."""
_ROOFS, _BETWEEN, _ROW = 3.1, 0.14, 0.215
"""Heights in inches: roofs, gap below them, row of a kernel."""
_SMALL, _TEXT = 8.5, 9
_WIDEST = 30
"""Factor beyond the largest ridge or problem intensity up to which points widen the axis. Shared memory that
is hardly used lies so far to the right that it would squeeze everything else."""
_LABEL_SHARE = 0.05
"""Height of a label as a share of the axis."""
_SAME_PLACE = 0.04
"""Distance in decades below which points share a label."""


@dataclass(frozen=True, slots=True)
class _Theme:
    back: str
    ink: str
    faint: str
    band: str
    levels: dict[str, str]
    wrong: str


# Okabe and Ito's colours, which people with any colour vision tell apart; shapes say the same.
_LIGHT = _Theme(
    back="#ffffff", ink="#1b1f24", faint="#8c959f", band="#f3f5f7", wrong="#D55E00",
    levels={DRAM: "#C77F00", L2: "#0072B2", SHARED: "#009E73"},
)  # fmt: skip
_DARK = _Theme(
    back="#1c2126", ink="#e6e6e6", faint="#7d8790", band="#252b31", wrong="#FF7A33",
    levels={DRAM: "#E69F00", L2: "#56B4E9", SHARED: "#2DC79A"},
)  # fmt: skip
_SHAPES = {DRAM: "s", L2: "o", SHARED: "^"}
_DASHES = {DRAM: "-", L2: "--", SHARED: ":"}
_SIZES = {DRAM: 8.5, L2: 5.5, SHARED: 5.5}
"""Marker sizes in points; they differ so that one marker shows inside the other where levels coincide."""
_COUNTED = {DRAM: "each sector once", L2: "every request", SHARED: "wavefronts"}

_INTENSITY = "Arithmetic intensity (the problem’s FLOPs ÷ bytes moved), FLOP/B"

_drawn: dict[tuple[object, ...], bytes] = {}
"""Cache of drawn charts by content, the oldest first."""
_DRAWN_KEPT = 16
"""Most charts in the cache."""
_drawing = threading.Lock()
"""Lock around drawing, since matplotlib is not safe to use from several threads."""


def png(session: Session, *, dark: bool = False) -> bytes | None:
    """Return the chart, 1350 pixels wide on a solid background.

    None without floating-point work or bandwidth.

    Charts are cached: a notebook shows the same one in its panel and its record, and drawing takes a third of
    a second. Safe to call from any thread; one draws at a time.
    """
    roof = place(session.facts, roof_device(session))
    if not roof.problem.intensity or not roof.bandwidth_bytes_per_s:
        return None
    every = marks(session)
    found = shown(every)
    key = (session.problem.digest, hardware(session), roof.levels, roof.ceilings, found, len(every), dark)
    with _drawing:
        if key not in _drawn:
            title = f"Roofline of {hardware(session)}"
            if len(found) < len(every):
                title += f": {len(found)} of {len(every)} kernels, the best and the newest"
            _drawn[key] = _draw(session, roof, found, title, _DARK if dark else _LIGHT)
        image = _drawn[key]
        while len(_drawn) > _DRAWN_KEPT:
            del _drawn[next(iter(_drawn))]
    return image


def _draw(session: Session, roof: Roofline, found: Sequence[Mark], title: str, theme: _Theme) -> bytes:
    """Draw two axes of fixed size in inches, so that neither a long name nor many rows squeeze them."""
    rows = max(len(found), 1) * _ROW + 0.1 if found else 0.0
    by_share = any(mark.share is not None for mark in found)
    # Shares need an axis of their own, whose numbers take room between the two parts.
    between = (0.58 if by_share else _BETWEEN) if found else 0.0
    height = _TOP + _ROOFS + between + rows + _BOTTOM
    canvas = Figure(figsize=(_WIDTH, height), dpi=_DPI, facecolor=theme.back)
    FigureCanvasAgg(canvas)
    wide, left = (_WIDTH - _LEFT - _RIGHT) / _WIDTH, _LEFT / _WIDTH
    upper = canvas.add_axes((left, (_BOTTOM + rows + between) / height, wide, _ROOFS / height))
    _frame(upper, roof, found, theme)
    _roofs(upper, roof, theme)
    _problem(upper, roof, theme)
    _run_size(upper, session, theme)
    _measured(upper, found, theme)
    canvas.text(0.012, 1 - 0.13 / height, title, color=theme.ink, fontsize=11, va="top")
    if found:
        lower = canvas.add_axes((left, _BOTTOM / height, wide, rows / height))
        _rows(lower, found, theme)
        _share_rows(lower, found, theme) if by_share else _intensity_rows(lower, upper, found, theme)
    if by_share:
        upper.set_xlabel(_INTENSITY, color=theme.ink, fontsize=_TEXT)
    else:
        (lower if found else upper).set_xlabel(_INTENSITY, color=theme.ink, fontsize=_TEXT)
    _legend(canvas, roof, found, theme, by_share=by_share)
    target = io.BytesIO()
    canvas.savefig(target, format="png", dpi=_DPI, metadata={"Software": None})
    return smaller(target)


# -- the roofs -----------------------------------------------------------------------------------------------
def _frame(axes: Axes, roof: Roofline, found: Sequence[Mark], theme: _Theme) -> None:
    top = max((item.flops_per_s for item in roof.ceilings), default=roof.problem.attainable_flops_per_s)
    ridges = [item.ridge for item in roof.ceilings]
    xs = [roof.problem.intensity, *ridges]
    widest = max(xs) * _WIDEST
    xs += [x for mark in found for _, x in mark.intensities if x < widest]
    xs += [mark.achieved[0] for mark in found if mark.achieved]
    ys = [mark.achieved[1] for mark in found if mark.achieved]
    low, high = min(xs) / 4, max(xs) * 4
    _plain(axes, theme)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(min([roof.bandwidth_bytes_per_s * low, *(y / 3 for y in ys)]), max([top, *ys]) * 5)
    axes.set_ylabel("FLOP/s", color=theme.ink, fontsize=_TEXT)
    axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: figure(x)))
    axes.grid(visible=True, which="major", color=theme.faint, alpha=0.22, linewidth=0.6)


def _plain(axes: Axes, theme: _Theme) -> None:
    axes.set_facecolor(theme.back)
    axes.tick_params(colors=theme.ink, which="both", labelsize=_SMALL)
    for side, spine in axes.spines.items():
        spine.set_color(theme.faint)
        spine.set_visible(side in {"left", "bottom"})


def _roofs(axes: Axes, roof: Roofline, theme: _Theme) -> None:
    (low, high), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    highest = max((item.flops_per_s for item in roof.ceilings), default=top)
    for level in roof.levels:
        ends = (low, min(highest / level.bandwidth_bytes_per_s, high))
        if ends[1] <= low:
            continue
        axes.plot(
            ends,
            [level.bandwidth_bytes_per_s * x for x in ends],
            color=theme.levels[level.name],
            ls=_DASHES[level.name],
            lw=2.2 if level.name == DRAM else 1.5,
        )
    for item in roof.ceilings:
        axes.plot([item.ridge, high], [item.flops_per_s] * 2, color=theme.ink, lw=1.8)
        axes.plot([item.ridge] * 2, [bottom, item.flops_per_s], color=theme.faint, lw=0.8, ls=":")
    gap = 0.06 * math.log10(top / bottom)
    heights = _spread([math.log10(item.flops_per_s) for item in roof.ceilings], gap)
    for item, at in zip(roof.ceilings, heights, strict=True):
        words = f"{item.pipe} {scaled(item.flops_per_s, '')}{' *' if item.note else ''}"
        axes.annotate(
            words, (high, 10**at), xytext=(4, 0), textcoords="offset points", color=theme.ink,
            fontsize=_SMALL, va="center", annotation_clip=False,
        )  # fmt: skip


def _spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Move ascending positions upwards until neighbours are `gap` apart."""
    found: list[float] = []
    for place_ in wanted:
        found.append(max(place_, found[-1] + gap) if found else place_)
    return found


def _problem(axes: Axes, roof: Roofline, theme: _Theme) -> None:
    """Draw the problem's intensity, which no kernel exceeds, and its floor on the roof."""
    low, high = axes.get_xlim()
    x, y = roof.problem.intensity, roof.problem.attainable_flops_per_s
    axes.axvspan(x, high, color=theme.faint, alpha=0.09, lw=0)
    axes.axvline(x, color=theme.ink, lw=1.1, ls=(0, (5, 3)))
    # Below the kernels in drawing order: the best kernels come to lie on it.
    axes.plot([x], [y], "*", mfc=theme.back, mec=theme.ink, mew=1.2, ms=15, zorder=3.5)
    left = x > math.sqrt(low * high)
    axes.annotate(
        f"the problem’s floor: {duration(roof.floor_ms / 1e3)}\nno DRAM point lies further right",
        (x, axes.get_ylim()[1]), xytext=(-5 if left else 5, -3), textcoords="offset points",
        color=theme.ink, fontsize=_SMALL, va="top", ha="right" if left else "left",
        bbox={"facecolor": theme.back, "edgecolor": "none", "alpha": 0.75, "pad": 1.2},
    )  # fmt: skip


def _run_size(axes: Axes, session: Session, theme: _Theme) -> None:
    """Draw the highest intensity of a simulated kernel: a smaller problem offers less reuse."""
    run, full = session.facts.scaled, session.facts.full
    if not simulated(session) or not run.flops or not run.least_bytes:
        return
    x = run.flops / run.least_bytes
    # Both intensities nearly equal: a second line would only hide the first.
    if abs(math.log10(x * full.least_bytes / full.flops)) < _SAME_PLACE:
        return
    axes.axvline(x, color=theme.faint, lw=1.1, ls="-.")
    axes.annotate(
        "most at the\nsimulated size", (x, axes.get_ylim()[0]), xytext=(4, 5), textcoords="offset points",
        color=theme.ink, fontsize=_SMALL, va="bottom",
        bbox={"facecolor": theme.back, "edgecolor": "none", "alpha": 0.75, "pad": 1.2},
    )  # fmt: skip


def _measured(axes: Axes, found: Sequence[Mark], theme: _Theme) -> None:
    """Draw measured kernels with an arrow from parent to child; kernels at one place share a label."""
    placed = {mark.number: mark.achieved for mark in found if mark.achieved}
    for mark in found:
        if mark.achieved is None:
            continue
        origin = placed.get(mark.came_from) if mark.came_from is not None else None
        if origin and not _near(origin, mark.achieved):
            _arrow(axes, origin, mark.achieved, theme)
        _dot(axes, mark.achieved, mark, theme, "o", theme.levels[L2], 7)
    groups = _groups(found)
    bottom, top = axes.get_ylim()
    heights = [math.log10((group[0].achieved or (0.0, 1.0))[1]) for group in groups]
    order = sorted(range(len(groups)), key=heights.__getitem__)
    spread = _spread([heights[one] for one in order], _LABEL_SHARE * math.log10(top / bottom))
    label_at = {one: 10**height for one, height in zip(order, spread, strict=True)}
    for number, group in enumerate(groups):
        x, y = (group[0].achieved or (0.0, 0.0))[0], label_at[number]
        wrong = any(mark.above for mark in group)
        words = _numbers(group) + (" above the roof: blocked" if wrong else "")
        left = x > math.sqrt(math.prod(axes.get_xlim()))
        away = 14 if wrong else 10
        axes.annotate(
            words, (x, y), xytext=(-away if left else away, 0), textcoords="offset points", fontsize=_TEXT,
            va="center", ha="right" if left else "left", color=theme.wrong if wrong else theme.ink, zorder=6,
            bbox={"facecolor": theme.back, "edgecolor": "none", "alpha": 0.8, "pad": 0.8},
        )  # fmt: skip


def _groups(found: Sequence[Mark]) -> list[list[Mark]]:
    """Group measured kernels that lie within the width of a label."""
    groups: list[list[Mark]] = []
    for mark in sorted((one for one in found if one.achieved), key=lambda one: one.achieved or (0, 0)):
        last = groups[-1][0] if groups else None
        alike = last is not None and bool(last.above) == bool(mark.above)
        if last and alike and _near(last.achieved, mark.achieved, room=3.2 * _SAME_PLACE):
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return [sorted(group, key=lambda one: one.number) for group in groups]


def _numbers(group: Sequence[Mark]) -> str:
    """Format round numbers, consecutive ones as a span: ``r2–r5, r8``."""
    spans: list[list[int]] = []
    for mark in group:
        if spans and mark.number == spans[-1][-1] + 1:
            spans[-1].append(mark.number)
        else:
            spans.append([mark.number])
    return ", ".join(f"r{one[0]}" if len(one) == 1 else f"r{one[0]}–r{one[-1]}" for one in spans)


def _near(
    one: tuple[float, float] | None, other: tuple[float, float] | None, *, room: float = _SAME_PLACE
) -> bool:
    return bool(one and other) and all(
        abs(math.log10(a / b)) < room for a, b in zip(one or (), other or (), strict=True)
    )


# -- a row for each kernel -----------------------------------------------------------------------------------
def _rows(axes: Axes, found: Sequence[Mark], theme: _Theme) -> None:
    _plain(axes, theme)
    axes.set_facecolor(theme.band)
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set_yticks(range(len(found)), [mark.name for mark in found], fontsize=_SMALL)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.tick_params(axis="y", length=0, pad=7)
    for row, mark in enumerate(found):
        axes.annotate(
            mark.result, (1, row), xycoords=("axes fraction", "data"), xytext=(4, 0),
            textcoords="offset points", fontsize=_SMALL, va="center", annotation_clip=False,
            color=theme.wrong if mark.above else theme.ink,
        )  # fmt: skip
    axes.grid(visible=True, which="major", axis="y", color=theme.faint, alpha=0.25, linewidth=0.6)


def _intensity_rows(axes: Axes, roofs: Axes, found: Sequence[Mark], theme: _Theme) -> None:
    """Draw rows by intensity in FLOP/B, on the scale of the roofs."""
    axes.set_xscale("log")
    axes.set_xlim(roofs.get_xlim())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: figure(x)))
    roofs.tick_params(labelbottom=False)
    row_of = {mark.number: row for row, mark in enumerate(found)}
    by_number = {mark.number: mark for mark in found}
    for row, mark in enumerate(found):
        here, origin = mark.intensity(), by_number.get(mark.came_from or 0)
        there = origin.intensity() if origin and mark.came_from is not None else None
        if here and there and origin:
            _arrow(axes, (there, row_of[origin.number]), (here, row), theme)
        for level, x in mark.intensities:
            if x > axes.get_xlim()[1]:
                continue
            _dot(axes, (x, row), mark, theme, _SHAPES[level], theme.levels[level], _SIZES[level])


def _share_rows(axes: Axes, found: Sequence[Mark], theme: _Theme) -> None:
    """Draw rows by measured share of the floor; 1 is the roof."""
    most = max([1.0, *(mark.share or 0.0 for mark in found)])
    axes.set_xlim(-0.015 * most, most * 1.06)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.axvline(1.0, color=theme.ink, lw=1.1, ls=(0, (5, 3)))
    axes.set_xlabel("Share of the roof (floor ÷ measured time)", color=theme.ink, fontsize=_TEXT)
    row_of = {mark.number: row for row, mark in enumerate(found)}
    shares = {mark.number: mark.share for mark in found}
    for row, mark in enumerate(found):
        there = shares.get(mark.came_from) if mark.came_from is not None else None
        if mark.share is None:
            continue
        if there is not None and mark.came_from is not None:
            _arrow(axes, (there, row_of[mark.came_from]), (mark.share, row), theme)
        _dot(axes, (mark.share, row), mark, theme, "o", theme.levels[L2], 8)


def _dot(  # noqa: PLR0913, PLR0917 - a marker has this many properties
    axes: Axes, at: tuple[float, float], mark: Mark, theme: _Theme, shape: str, color: str, size: float
) -> None:
    edge = theme.wrong if mark.above else color
    face = edge if mark.approved else theme.back
    kind = "X" if mark.above else shape
    axes.plot(*at, kind, mfc=face, mec=edge, mew=1.5, ms=size, zorder=4, clip_on=False)
    if mark.above:
        axes.plot(*at, "o", mfc="none", mec=theme.wrong, mew=1.3, ms=size + 7, zorder=4, clip_on=False)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], theme: _Theme) -> None:
    look = {"arrowstyle": "-|>", "color": theme.faint, "shrinkA": 4, "shrinkB": 5, "lw": 1.1}
    axes.annotate("", end, start, arrowprops=look, zorder=3)


# -- what the signs mean -------------------------------------------------------------------------------------
def _legend(canvas: Figure, roof: Roofline, found: Sequence[Mark], theme: _Theme, *, by_share: bool) -> None:
    """Draw the legend: memory levels by line, and by marker where rows lie at intensities; the star."""
    counted = {level for mark in found for level, _ in mark.intensities} if not by_share else set()
    bandwidths = {level.name: level.bandwidth_bytes_per_s for level in roof.levels}
    handles = [
        Line2D(
            [], [], color=theme.levels[name], ls=_DASHES[name] if name in bandwidths else "",
            marker=_SHAPES[name] if name in counted else "", ms=6, lw=1.8,
            label=_legend_words(name, bandwidths.get(name), counted=name in counted),
        )
        for name in (DRAM, L2, SHARED)
        if name in bandwidths or name in counted
    ]  # fmt: skip
    label = "the problem at its floor"
    handles.append(Line2D([], [], marker="*", ls="", mfc=theme.back, mec=theme.ink, ms=10, label=label))
    shown = canvas.legend(
        handles=handles, loc="lower center", ncol=2, fontsize=_SMALL, frameon=False,
        handlelength=2.4, columnspacing=1.4, borderaxespad=0.2,
    )  # fmt: skip
    for text in shown.get_texts():
        text.set_color(theme.ink)


def _legend_words(name: str, bandwidth: float | None, *, counted: bool) -> str:
    words = f"{name} {scaled(bandwidth, 'B/s')}" if bandwidth else name
    return f"{words}, {_COUNTED[name]}" if counted else words
