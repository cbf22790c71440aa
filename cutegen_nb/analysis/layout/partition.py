"""Thread–value layouts.

The thread that holds each element of a tile, and its number among the thread's values.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from cutegen_nb.analysis.layout.layout import Layout, coordinate, parse_layout, parse_tiler
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.layout import TvLayout

MOST_PAIRS = 1 << 16
"""Most pairs of thread and value that are evaluated; a kernel's tile has fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Tile of a tensor, partitioned among threads."""

    rows: int
    """Extent of the tile's first mode."""
    columns: int
    """Extent of the tile's second mode; 1 for a tile of one mode."""
    threads: int
    """Number of threads."""
    values: int
    """Number of values of each thread."""
    places: tuple[tuple[tuple[int, int], ...], ...]
    """(row, column) of each value of each thread, indexed by thread and then value."""

    def holders(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """Return every (thread, value) that holds each (row, column), lowest thread first."""
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for thread, places in enumerate(self.places):
            for value, place in enumerate(places):
                found.setdefault(place, []).append((thread, value))
        return found


@functools.lru_cache(maxsize=64)
def partition(view: TvLayout) -> Partition:
    """Evaluate a thread–value layout over its tile. Raises UsageError where the two do not fit.

    Results are cached: words, tables and drawings of one layout all begin with it.
    """
    # The layout maps (thread, value) to an integer coordinate of the tile; each mode of the tile then maps
    # its part of that coordinate to a row or a column.
    layout, modes = parse_layout(view.text), parse_tiler(view.tiler)
    if layout.rank != 2 or not isinstance(layout.shape, tuple):  # noqa: PLR2004 - thread and value
        raise UsageError(f"{view.text} has {layout.rank} modes; a thread–value layout has two.")
    if len(modes) > 2:  # noqa: PLR2004 - rows and columns
        raise UsageError(f"The tile {view.tiler} has {len(modes)} modes; a drawing shows two.")
    if layout.size > MOST_PAIRS:
        raise UsageError(
            f"{view.text} has {layout.size:,} pairs of thread and value; {MOST_PAIRS:,} are drawn."
        )
    threads, values = layout.mode(0).size, layout.mode(1).size
    places = tuple(
        tuple(_place(layout((thread, value)), modes, view) for value in range(values))
        for thread in range(threads)
    )
    # A mode with gaps covers more rows than it has elements, so the extent is the cosize.
    extents = [mode.cosize for mode in modes]
    return Partition(
        rows=extents[0],
        columns=extents[1] if len(extents) > 1 else 1,
        threads=threads,
        values=values,
        places=places,
    )


def _place(index: int, modes: tuple[Layout, ...], view: TvLayout) -> tuple[int, int]:
    sizes = tuple(mode.size for mode in modes)
    whole = 1
    for extent in sizes:
        whole *= extent
    if index >= whole:
        raise UsageError(
            f"{view.text} goes to index {index} of the tile {view.tiler}, which has {whole} elements."
        )
    # Position along each mode of the tile; each mode's layout then gives the row or column.
    at = coordinate(index, sizes)
    assert isinstance(at, tuple)
    found = [mode(one) for mode, one in zip(modes, at, strict=True)]
    return (found[0], found[1] if len(found) > 1 else 0)
