"""A drawing of cells and words, as values: written as SVG and as PNG from the same list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

PALETTE = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#999999")
"""Okabe and Ito's colours, told apart by every kind of colour vision; every cell's word says the same."""
FILL_OPACITY = 0.5
"""Of the fills, so that the words in them read on light and on dark."""
WRONG = "#D55E00"
"""Frame of what conflicts; the words say so too."""
TEXT = 11.0
"""Pixels of words, where they are not made smaller."""


class Weight(StrEnum):
    """How a cell is framed."""

    PLAIN = "plain"
    """Thinly."""
    CHOSEN = "chosen"
    """In the colour of the words: it is part of what is told."""
    WRONG = "wrong"
    """In vermilion: it conflicts."""
    EMPTY = "empty"
    """Dashed: there is nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What one cell of a grid shows."""

    color: int | None
    """Index into `PALETTE`; None for no fill."""
    words: tuple[str, ...] = ()
    """Lines in it; left out where the cell is too small."""
    weight: Weight = Weight.PLAIN
    """Its frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A rectangle with words."""

    x: float
    """Left edge, in pixels."""
    y: float
    """Upper edge."""
    width: float
    """Pixels."""
    height: float
    """Pixels."""
    content: Content
    """Fill, words and frame."""
    text_size: float
    """Pixels of its words; 0 for no words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A line of text."""

    x: float
    """Where it is anchored, in pixels."""
    y: float
    """Its middle."""
    text: str
    """It."""
    size: float = TEXT
    """Pixels."""
    anchor: str = "start"
    """``start``, ``middle`` or ``end``."""
    bold: bool = False
    """For headings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stroke:
    """A straight line, where a mode begins anew."""

    x1: float
    """Pixels."""
    y1: float
    """Pixels."""
    x2: float
    """Pixels."""
    y2: float
    """Pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Cells and words on an area, with the same in a sentence."""

    width: float
    """Pixels."""
    height: float
    """Pixels."""
    title: str
    """What it shows, for its heading and for who cannot see it."""
    description: str
    """What there is to see, in sentences; what is left out too."""
    cells: tuple[Cell, ...] = ()
    """In the order in which they are drawn."""
    words: tuple[Words, ...] = ()
    """On top of them."""
    strokes: tuple[Stroke, ...] = ()
    """On top of the cells."""

    def moved(self, x: float, y: float) -> Drawing:
        """The same, further right and down."""
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
    """Rows and columns of cells, to be drawn."""

    title: str
    """Over it."""
    rows: int
    """How many there are, drawn or not."""
    columns: int
    """How many there are, drawn or not."""
    content: Callable[[int, int], Content]
    """Row and column → what stands there."""
    row_breaks: tuple[int, ...] = ()
    """Every so many rows an inner mode begins anew."""
    column_breaks: tuple[int, ...] = ()
    """The same for columns."""
    names: tuple[str, str] = ("", "")
    """Of the vertical and the horizontal axis."""
    headings: bool = True
    """Whether rows and columns are numbered."""
    frames: tuple[tuple[int, int, int, int, Weight], ...] = ()
    """Rectangles to frame: row, column, rows, columns, how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a grid may take."""

    width: float = 800.0
    """Pixels at most."""
    rows: int = 32
    """Rows drawn at most."""
    columns: int = 64
    """Columns drawn at most."""
    cell_height: float = 0.0
    """Pixels that a row takes at least, so that rows of neighbours stay level."""
    left: float = 0.0
    """Pixels before the first column at least, so that columns of neighbours stay level."""
