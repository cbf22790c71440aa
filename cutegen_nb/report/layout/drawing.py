"""Drawing of cells and text as values, which SVG and PNG output share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

PALETTE = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#999999")
"""Okabe and Ito's colours, distinct for every kind of colour vision; every cell's text repeats the
information."""
FILL_OPACITY = 0.5
"""Opacity of fills, so that text on them is readable in light and dark."""
WRONG = "#D55E00"
"""Frame colour of conflicting cells; the text tells the conflict too."""
TEXT = 11.0
"""Default font size in pixels."""


class Weight(StrEnum):
    """Frame style of a cell."""

    PLAIN = "plain"
    """Thin frame."""
    CHOSEN = "chosen"
    """Frame in the text's colour, for cells that the description refers to."""
    WRONG = "wrong"
    """Frame in vermilion, for conflicting cells."""
    EMPTY = "empty"
    """Dashed frame, for places without content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Content of one cell of a grid."""

    color: int | None
    """Index into `PALETTE`; None for no fill."""
    words: tuple[str, ...] = ()
    """Lines of text; left out where the cell is too small."""
    weight: Weight = Weight.PLAIN
    """Frame style."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Rectangle with text."""

    x: float
    """Left edge in pixels."""
    y: float
    """Upper edge in pixels."""
    width: float
    """Width in pixels."""
    height: float
    """Height in pixels."""
    content: Content
    """Fill, text and frame."""
    text_size: float
    """Font size in pixels; 0 for no text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLine:
    """Line of text."""

    x: float
    """Horizontal position of the anchor in pixels."""
    y: float
    """Vertical middle in pixels."""
    text: str
    """Text of the line."""
    size: float = TEXT
    """Font size in pixels."""
    anchor: str = "start"
    """Anchor of the text: ``start``, ``middle`` or ``end``."""
    bold: bool = False
    """True for headings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stroke:
    """Straight line that marks where an inner mode starts again."""

    x1: float
    """Horizontal start in pixels."""
    y1: float
    """Vertical start in pixels."""
    x2: float
    """Horizontal end in pixels."""
    y2: float
    """Vertical end in pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Cells and text on an area, with a description in words."""

    width: float
    """Width in pixels."""
    height: float
    """Height in pixels."""
    title: str
    """Subject of the drawing, for its heading and for screen readers."""
    description: str
    """Description in sentences, including parts that are not drawn."""
    cells: tuple[Cell, ...] = ()
    """Cells in drawing order."""
    words: tuple[TextLine, ...] = ()
    """Text, drawn on top of the cells."""
    strokes: tuple[Stroke, ...] = ()
    """Lines, drawn on top of the cells."""

    def moved(self, x: float, y: float) -> Drawing:
        """Return the drawing, moved right and down by pixels."""
        return replace(
            self,
            cells=tuple(replace(one, x=one.x + x, y=one.y + y) for one in self.cells),
            words=tuple(replace(one, x=one.x + x, y=one.y + y) for one in self.words),
            strokes=tuple(
                replace(one, x1=one.x1 + x, x2=one.x2 + x, y1=one.y1 + y, y2=one.y2 + y)
                for one in self.strokes
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Grid of cells to be drawn."""

    title: str
    """Title above the grid."""
    rows: int
    """Number of rows, drawn or not."""
    columns: int
    """Number of columns, drawn or not."""
    content: Callable[[int, int], Content]
    """Function from row and column to the cell's content."""
    row_breaks: tuple[int, ...] = ()
    """Periods in rows at which an inner mode starts again."""
    column_breaks: tuple[int, ...] = ()
    """Periods in columns at which an inner mode starts again."""
    names: tuple[str, str] = ("", "")
    """Names of the vertical and the horizontal axis."""
    headings: bool = True
    """True if rows and columns are numbered."""
    frames: tuple[tuple[int, int, int, int, Weight], ...] = ()
    """Rectangles to frame: row, column, rows, columns, frame style."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Limits on the size of a grid."""

    width: float = 800.0
    """Most pixels in width."""
    rows: int = 32
    """Most rows that are drawn."""
    columns: int = 64
    """Most columns that are drawn."""
    cell_height: float = 0.0
    """Least height of a row in pixels, so that rows of neighbouring grids are level."""
    left: float = 0.0
    """Least pixels before the first column, so that columns of grids above each other are aligned."""
