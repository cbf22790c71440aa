"""What wrong elements have in common, as a value that a prompt and a report share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class WrongKind(StrEnum):
    """The shape of an error; each points at another kind of bug."""

    UNWRITTEN = "unwritten"
    ZEROS = "all zeros"
    ONE_VALUE = "one value"
    FACTOR = "constant factor"
    OFFSET = "constant offset"
    AN_INPUT = "an input"
    TRANSPOSED = "transposed"
    SHIFTED = "shifted"
    NAN = "NaN"
    ZERO_ELEMENTS = "zero elements"
    TAIL = "tail"
    RUN = "one run"
    STRIDE = "stride"
    TILES = "tiles"
    DIMENSION = "one dimension"
    SMALL = "small everywhere"
    SCATTERED = "scattered"


@dataclass(frozen=True, slots=True, kw_only=True)
class TileShare:
    """Wrong elements within one tile of the output."""

    tile: tuple[int, ...]
    """Index of the tile in each dimension of the output seen as a matrix (or a vector)."""
    bad_fraction: float
    """Share of its elements that are wrong, 0–1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongValues:
    """The wrong elements of one output."""

    kind: WrongKind
    """The pattern that fits best."""
    sentence: str
    """The pattern in a sentence, with its figures."""
    hint: str = ""
    """Where such a pattern usually comes from; empty where nothing usual does."""
    bad_count: int = 0
    """Wrong elements."""
    element_count: int = 0
    """Elements looked at."""
    nan_count: int = 0
    """NaNs where none is expected."""
    unwritten_count: int = 0
    """Elements that still hold the poison."""
    factor: float | None = None
    """For FACTOR: candidate ÷ expected."""
    offset: float | None = None
    """For OFFSET: candidate − expected."""
    step: int | None = None
    """For STRIDE and SHIFTED: the distance in elements."""
    tile_shape: tuple[int, ...] = ()
    """Extent of the tiles below, rows then columns (or one extent for a vector); empty without tiles."""
    tiles: tuple[TileShare, ...] = ()
    """The tiles with wrong elements, worst first, at most eight."""
    bad_tiles: int = 0
    """Tiles with wrong elements in all."""
    tile_count: int = 0
    """Tiles in all."""
