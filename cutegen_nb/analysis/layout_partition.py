"""Thread–value layouts: which thread holds which element of a tile, and as which of its values."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.analysis.layout import Layout, coordinate, parse_layout, parse_tiler
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.layout import TvLayout

MOST_PAIRS = 1 << 16
"""Pairs of thread and value that are looked at; a tile of a kernel has fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A tile shared out among threads."""

    rows: int
    """Extent of the tile's first mode."""
    columns: int
    """Extent of its second; 1 where it has one."""
    threads: int
    """How many threads take part."""
    values: int
    """How many values each has."""
    places: tuple[tuple[tuple[int, int], ...], ...]
    """For each thread, (row, column) of each of its values."""

    def holders(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """Each (row, column) with every (thread, value) that it is of, lowest thread first."""
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for thread, places in enumerate(self.places):
            for value, place in enumerate(places):
                found.setdefault(place, []).append((thread, value))
        return found


def partition(view: TvLayout) -> Partition:
    """What a thread–value layout over a tile says. Raises UsageError where the two do not fit."""
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
    at = coordinate(index, sizes)
    assert isinstance(at, tuple)
    found = [mode(one) for mode, one in zip(modes, at, strict=True)]
    return (found[0], found[1] if len(found) > 1 else 0)
