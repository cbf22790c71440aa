"""SVG output of a drawing: text only, no script, in the page's colours or its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from markupsafe import Markup

from cutegen_nb.report.layout.drawing import FILL_OPACITY, PALETTE, WRONG, Cell, Drawing, Weight
from cutegen_nb.report.markup import Style, fill, pixels

_MARGIN = 12.0
_SMALLEST = 0.85
"""Share of its width to which a drawing may shrink before it scrolls; below it, text would be too small."""
_TOUCHING = 0.01
"""Distance in pixels below which cells count as touching, for rounding errors."""
FACE = "system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif"
"""Font family of drawings."""
_BASELINE = 0.35
"""Distance from a line's middle to its baseline ÷ font size; a computed baseline is the same in every
viewer."""


def svg(drawing: Drawing, *, own_colors: bool = False) -> Markup:
    """Return the drawing as one ``<svg>``.

    Text and frames take the colour of the surrounding text. `own_colors` adds a background and ink of its
    own, light or dark as the viewer prefers, for a picture that stands alone.
    """
    width, height = drawing.width + 2 * _MARGIN, drawing.height + 2 * _MARGIN
    return fill(
        "drawing",
        Style.PAGE,
        drawing=drawing,
        size=(width, height, _SMALLEST * width),
        face=FACE,
        own_colors=own_colors,
        margin=_MARGIN,
        fills=_fills(drawing.cells),
        fill_opacity=FILL_OPACITY,
        frames=_frames(drawing.cells),
        cell_words=_cell_words(drawing.cells),
        words=[(one, one.y + one.size * _BASELINE) for one in drawing.words],
    )


def _fills(cells: Iterable[Cell]) -> Iterator[tuple[str, str]]:
    """Iterate over colours with one path each, in which touching cells of a colour are one box.

    A tile has thousands of cells.
    """
    by_color: dict[int, list[str]] = {}
    rows: dict[tuple[float, float], list[Cell]] = {}
    for one in cells:
        if one.content.color is not None:
            rows.setdefault((one.y, one.height), []).append(one)
    for row in rows.values():
        for first, width in _runs(sorted(row, key=lambda one: one.x)):
            color = first.content.color
            assert color is not None
            by_color.setdefault(color, []).append(_box(replace(first, width=width)))
    for color, boxes in sorted(by_color.items()):
        yield PALETTE[color], "".join(boxes)


def _runs(row: Sequence[Cell]) -> Iterator[tuple[Cell, float]]:
    """Iterate over runs of touching cells of one colour: the first cell and the run's width."""
    first, end = row[0], row[0].x + row[0].width
    for one in row[1:]:
        if one.content.color == first.content.color and abs(one.x - end) < _TOUCHING:
            end = one.x + one.width
            continue
        yield first, end - first.x
        first, end = one, one.x + one.width
    yield first, end - first.x


_FRAME = {
    Weight.PLAIN: {"stroke": "currentColor", "stroke-opacity": 0.25, "stroke-width": 0.6},
    Weight.EMPTY: {
        "stroke": "currentColor", "stroke-opacity": 0.25, "stroke-width": 0.6, "stroke-dasharray": "2 2",
    },
    Weight.CHOSEN: {"stroke": "currentColor", "stroke-width": 1.6},
    Weight.WRONG: {"stroke": WRONG, "stroke-width": 2.6},
}  # fmt: skip
"""Attributes of each frame style, in drawing order."""


def _frames(cells: Iterable[Cell]) -> Iterator[tuple[str, dict[str, object]]]:
    """Iterate over frame styles: their path and its attributes."""
    by_weight: dict[Weight, list[str]] = {}
    for one in cells:
        by_weight.setdefault(one.content.weight, []).append(_box(one))
    for weight, attributes in _FRAME.items():
        if weight in by_weight:
            yield "".join(by_weight[weight]), attributes


def _box(one: Cell) -> str:
    return f"M{pixels(one.x)} {pixels(one.y)}h{pixels(one.width)}v{pixels(one.height)}h{pixels(-one.width)}z"


def _cell_words(cells: Iterable[Cell]) -> dict[tuple[float, float], list[tuple[float, str]]]:
    """Group the text of cells by font size and baseline: one element for each keeps the file small."""
    lines: dict[tuple[float, float], list[tuple[float, str]]] = {}
    for one in cells:
        words = one.content.words if one.text_size else ()
        for row, line in enumerate(words):
            y = one.y + one.height * (row + 0.5) / len(words) + one.text_size * _BASELINE
            lines.setdefault((one.text_size, y), []).append((one.x + one.width / 2, line))
    return lines
