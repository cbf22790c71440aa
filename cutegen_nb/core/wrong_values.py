"""Patterns of wrong elements in an output, shared by prompts and reports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class WrongKind(StrEnum):
    """Pattern of an error; each hints at another kind of bug."""

    UNWRITTEN = "unwritten"
    """Elements that no thread wrote."""
    ZEROS = "all zeros"
    """An output of zeros only."""
    ONE_VALUE = "one value"
    """One value in every element."""
    FACTOR = "constant factor"
    """Every element times the same factor."""
    OFFSET = "constant offset"
    """The same number added to every element."""
    AN_INPUT = "an input"
    """A copy of an input."""
    TRANSPOSED = "transposed"
    """The last two dimensions swapped."""
    SHIFTED = "shifted"
    """Every element at its neighbour's place in memory."""
    NAN = "NaN"
    """Wrong elements that are all NaN."""
    ZERO_ELEMENTS = "zero elements"
    """Wrong elements that are all zero, in an output that is not."""
    TAIL = "tail"
    """One run of wrong elements at the end of the output."""
    RUN = "one run"
    """One run of wrong elements elsewhere."""
    STRIDE = "stride"
    """Wrong elements at equal distances."""
    TILES = "tiles"
    """Whole tiles wrong, the others right."""
    DIMENSION = "one dimension"
    """Wrong elements at some indices of one dimension."""
    SMALL = "small everywhere"
    """Errors of precision: each small, or within its gate."""
    SCATTERED = "scattered"
    """Wrong elements without an order in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TileShare:
    """Share of wrong elements within one tile of the output."""

    tile: tuple[int, ...]
    """Index of the tile in each dimension of the output seen as a matrix (or a vector)."""
    bad_fraction: float
    """Share of the tile's elements that are wrong, 0–1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongValues:
    """The wrong elements of one output."""

    kind: WrongKind
    """Best-fitting pattern."""
    sentence: str
    """The pattern in a sentence, with its figures."""
    hint: str = ""
    """Usual cause of the pattern; empty where there is none."""
    bad_count: int = 0
    """Number of wrong elements."""
    element_count: int = 0
    """Number of elements compared."""
    nan_count: int = 0
    """Number of NaNs where none is expected."""
    unwritten_count: int = 0
    """Number of elements never written: they still hold the poison that new memory is filled with."""
    factor: float | None = None
    """For FACTOR: candidate ÷ expected."""
    offset: float | None = None
    """For OFFSET: candidate − expected."""
    step: int | None = None
    """For STRIDE and SHIFTED: the distance in elements."""
    tile_shape: tuple[int, ...] = ()
    """Extent of `tiles`, rows then columns (or one extent for a vector); empty without tiles."""
    tiles: tuple[TileShare, ...] = ()
    """Tiles with wrong elements, worst first, at most eight."""
    bad_tiles: int = 0
    """Number of tiles with wrong elements."""
    tile_count: int = 0
    """Number of tiles in all."""
