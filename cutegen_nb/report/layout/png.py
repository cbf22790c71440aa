"""PNG output of a drawing by matplotlib."""

from __future__ import annotations

import io

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from cutegen_nb.report.layout.drawing import FILL_OPACITY, PALETTE, WRONG, Cell, Drawing, Weight

_DPI = 144
_MARGIN = 12.0
_PIXEL = 1 / 96
"""Size of a CSS pixel in inches."""
_POINT = 0.75
"""Size of a CSS pixel in points."""
_ANCHOR = {"start": "left", "middle": "center", "end": "right"}
_WIDTH = {Weight.PLAIN: 0.6, Weight.EMPTY: 0.6, Weight.CHOSEN: 1.6, Weight.WRONG: 2.6}


def png(drawing: Drawing, *, dark: bool = False) -> bytes:
    """Return the drawing as PNG on a background of its own."""
    back, ink = ("#15181c", "#e6e8eb") if dark else ("#ffffff", "#1b1f24")
    width, height = drawing.width + 2 * _MARGIN, drawing.height + 2 * _MARGIN
    figure = Figure(figsize=(width * _PIXEL, height * _PIXEL), dpi=_DPI, facecolor=back)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(-_MARGIN, width - _MARGIN)
    axes.set_ylim(height - _MARGIN, -_MARGIN)
    axes.set_axis_off()
    for weight in Weight:
        drawn = [one for one in drawing.cells if one.content.weight is weight]
        if drawn:
            axes.add_collection(_collection(drawn, weight, ink))
    lines = [((one.x1, one.y1), (one.x2, one.y2)) for one in drawing.strokes]
    axes.add_collection(LineCollection(lines, colors=ink, linewidths=1.4 * _POINT))
    for one in drawing.cells:
        words = one.content.words if one.text_size else ()
        for row, line in enumerate(words):
            y = one.y + one.height * (row + 0.5) / len(words)
            axes.text(
                one.x + one.width / 2, y, line, color=ink, fontsize=one.text_size * _POINT, ha="center",
                va="center_baseline", parse_math=False,
            )  # fmt: skip
    for said in drawing.words:
        axes.text(
            said.x, said.y, said.text, color=ink, fontsize=said.size * _POINT, ha=_ANCHOR[said.anchor],
            va="center_baseline", weight="bold" if said.bold else "normal", parse_math=False,
        )  # fmt: skip
    kept = io.BytesIO()
    figure.savefig(kept, format="png", dpi=_DPI, facecolor=back)
    return kept.getvalue()


def _collection(cells: list[Cell], weight: Weight, ink: str) -> PatchCollection:
    fills = [
        (0.0, 0.0, 0.0, 0.0)
        if one.content.color is None
        else to_rgba(PALETTE[one.content.color], FILL_OPACITY)
        for one in cells
    ]
    edge = (
        to_rgba(WRONG) if weight is Weight.WRONG else to_rgba(ink, 1.0 if weight is Weight.CHOSEN else 0.25)
    )
    return PatchCollection(
        [Rectangle((one.x, one.y), one.width, one.height) for one in cells],
        facecolors=fills,
        edgecolors=edge,
        linewidths=_WIDTH[weight] * _POINT,
        linestyles="dashed" if weight is Weight.EMPTY else "solid",
    )
