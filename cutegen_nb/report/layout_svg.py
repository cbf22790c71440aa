"""A drawing as SVG: text only, no script, its colours those of the page or its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from cutegen_nb.report.layout_drawing import (
    FILL_OPACITY,
    PALETTE,
    WRONG,
    Cell,
    Drawing,
    Stroke,
    Weight,
    Words,
)
from cutegen_nb.report.markup import safe

_MARGIN = 12.0
_SMALLEST = 0.85
"""Share of its width below which a drawing is scrolled rather than shrunk: its words would be too small."""
_TOUCHING = 0.01
"""Pixels between cells that touch, by rounding."""
FACE = "system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif"
"""Of the words in drawings."""
_COLORS = (
    "<style>.cutegen-drawing{color:#1b1f24;background:#ffffff}"
    "@media(prefers-color-scheme:dark){.cutegen-drawing{color:#e6e8eb;background:#15181c}}</style>"
)
_BASELINE = 0.35
"""From a line's middle down to where its letters stand, over their size; every viewer agrees on this."""


def svg(drawing: Drawing, *, own_colors: bool = False) -> str:
    """The drawing as one ``<svg>``.

    Words and frames take the colour of the text around them. `own_colors` gives a picture that stands alone
    its own background and ink, light or dark as its viewer prefers.
    """
    width, height = drawing.width + 2 * _MARGIN, drawing.height + 2 * _MARGIN
    label = safe(" ".join(part for part in (drawing.title, drawing.description) if part))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="cutegen-drawing" '
        f'viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" '
        f'height="{_n(height)}" role="img" aria-label="{label}" font-family="{FACE}" '
        f'style="max-width:100%;min-width:{_n(_SMALLEST * width)}px;height:auto" fill="currentColor">'
        f"<title>{safe(drawing.title)}</title><desc>{safe(drawing.description)}</desc>"
        f'{_COLORS if own_colors else ""}<g transform="translate({_n(_MARGIN)} {_n(_MARGIN)})">'
        f"{''.join(_fills(drawing.cells))}{''.join(_frames(drawing.cells))}{_strokes(drawing.strokes)}"
        f"{''.join(_cell_words(drawing.cells))}{''.join(_words(one) for one in drawing.words)}</g></svg>"
    )


def _fills(cells: Iterable[Cell]) -> Iterable[str]:
    """One path a colour, and one box for neighbours of a colour: a tile has thousands of cells."""
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
        yield f'<path d="{"".join(boxes)}" fill="{PALETTE[color]}" fill-opacity="{FILL_OPACITY}"/>'


def _runs(row: Sequence[Cell]) -> Iterator[tuple[Cell, float]]:
    """The first cell of each run of touching cells of one colour, with the run's width."""
    first, end = row[0], row[0].x + row[0].width
    for one in row[1:]:
        if one.content.color == first.content.color and abs(one.x - end) < _TOUCHING:
            end = one.x + one.width
            continue
        yield first, end - first.x
        first, end = one, one.x + one.width
    yield first, end - first.x


_FRAME = {
    Weight.PLAIN: 'stroke="currentColor" stroke-opacity="0.25" stroke-width="0.6"',
    Weight.EMPTY: 'stroke="currentColor" stroke-opacity="0.25" stroke-width="0.6" stroke-dasharray="2 2"',
    Weight.CHOSEN: 'stroke="currentColor" stroke-width="1.6"',
    Weight.WRONG: f'stroke="{WRONG}" stroke-width="2.6"',
}


def _frames(cells: Iterable[Cell]) -> Iterable[str]:
    by_weight: dict[Weight, list[str]] = {}
    for one in cells:
        by_weight.setdefault(one.content.weight, []).append(_box(one))
    for weight, look in _FRAME.items():
        if weight in by_weight:
            yield f'<path d="{"".join(by_weight[weight])}" fill="none" {look}/>'


def _box(one: Cell) -> str:
    return f"M{_n(one.x)} {_n(one.y)}h{_n(one.width)}v{_n(one.height)}h{_n(-one.width)}z"


def _strokes(strokes: Iterable[Stroke]) -> str:
    path = "".join(f"M{_n(one.x1)} {_n(one.y1)}L{_n(one.x2)} {_n(one.y2)}" for one in strokes)
    return f'<path d="{path}" stroke="currentColor" stroke-width="1.4" fill="none"/>' if path else ""


def _cell_words(cells: Iterable[Cell]) -> Iterable[str]:
    """Lines of words at one height are one element, which is what keeps the text short."""
    lines: dict[tuple[float, float], list[str]] = {}
    for one in cells:
        words = one.content.words if one.text_size else ()
        for row, line in enumerate(words):
            y = one.y + one.height * (row + 0.5) / len(words) + one.text_size * _BASELINE
            middle = _n(one.x + one.width / 2)
            lines.setdefault((one.text_size, y), []).append(f'<tspan x="{middle}">{safe(line)}</tspan>')
    for (size, y), found in lines.items():
        yield f'<text y="{_n(y)}" font-size="{_n(size)}" text-anchor="middle">{"".join(found)}</text>'


def _words(one: Words) -> str:
    bold = ' font-weight="600"' if one.bold else ""
    anchor = f' text-anchor="{one.anchor}"' if one.anchor != "start" else ""
    y = one.y + one.size * _BASELINE
    return (
        f'<text x="{_n(one.x)}" y="{_n(y)}" font-size="{_n(one.size)}"{anchor}{bold}>{safe(one.text)}</text>'
    )


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
