"""Cells of shared memory that a request touches, and the warps at each cell.

A cell is as wide as the program's narrowest access to shared memory, at most a 4-byte word. So two threads
that write different halves of one word touch different cells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.ptx.model import TYPE_BYTES, Instruction
from cutegen_nb.simulator.state.addressing import ListedAddresses, SeparableAddresses
from cutegen_nb.simulator.state.batch import WARP, Batch

WORD = 4
"""Bytes of the widest cell."""
_ELEMENTS = frozenset({"ld", "ldu", "st", "atom", "red"})
"""Opcodes whose last modifier is the type of the elements accessed."""
_ELSEWHERE = {
    "shared": frozenset({"global", "const", "local", "param"}),
    "local": frozenset({"global", "const", "shared"}),
}
"""State spaces whose accesses cannot reach the memory; calls keep their parameters in local memory."""
_BITS: Array = np.uint32(1) << np.arange(WARP, dtype=np.uint32)
"""Bit of each warp of a CTA; a CTA has at most 32 warps."""


@dataclass(frozen=True, slots=True)
class Touch:
    """Cells that one request touches."""

    where: tuple[Any, Any]
    """Index of the cells in arrays of shape (rows, cells)."""
    bits: Array
    """Warps at each cell, as bits of a uint32."""
    several: bool
    """True if two warps may touch one cell."""
    listed: bool
    """True if cells are listed per CTA and may occur more than once."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    cells: Array | slice
    bits: Array
    several: bool


_patterns: dict[tuple[bytes, bytes, int, int, int], _Pattern] = {}
_CACHED = 10_000
"""Entries of the cache above; a cache with more is emptied."""


def cell_bytes(instructions: Iterable[Instruction], space: str) -> int:
    """Bytes of a cell of ``shared`` or ``local`` memory (``space``) for these instructions: 1, 2 or 4."""
    widths = [
        TYPE_BYTES.get(item.modifiers[-1], WORD)
        for item in instructions
        if item.opcode in _ELEMENTS
        and item.modifiers
        and not any(one.split("::")[0] in _ELSEWHERE[space] for one in item.modifiers)
    ]
    return min([WORD, *widths])


def touch(lanes: Batch, request: SeparableAddresses | ListedAddresses, size: int, cell: int) -> Touch:
    """Cells of a request of ``size`` bytes per thread, which lies inside shared memory and is aligned."""
    if isinstance(request, SeparableAddresses):
        return _same_in_all(lanes, request, size, cell)
    index = np.arange(lanes.lane_count) if request.lanes is None else request.lanes
    cta, thread = np.divmod(index, lanes.threads)
    many = max(1, size // cell)
    cells = (request.addresses // cell)[:, None] + np.arange(many)
    bits = _BITS[thread // WARP]
    where = (np.repeat(cta, many), cells.ravel())
    return Touch(where, np.repeat(bits, many), several=lanes.warps_per_cta > 1, listed=True)


def _same_in_all(lanes: Batch, request: SeparableAddresses, size: int, cell: int) -> Touch:
    first = int(request.row[0])
    apart = request.row - first
    active = b"" if request.active is None else request.active.tobytes()
    key = (apart.tobytes(), active, lanes.threads, size, cell)
    found = _patterns.get(key)
    if found is None:
        if len(_patterns) > _CACHED:
            _patterns.clear()
        threads = np.arange(lanes.threads) if request.active is None else request.active
        found = _patterns[key] = _find(np.broadcast_to(apart, threads.shape), threads, size, cell)
    start = (int(request.column[0]) + first) // cell
    cells = found.cells
    shifted = slice(cells.start + start, cells.stop + start) if isinstance(cells, slice) else cells + start
    return Touch((slice(None), shifted), found.bits, found.several, listed=False)


def _find(apart: Array, threads: Array, size: int, cell: int) -> _Pattern:
    many = max(1, size // cell)
    cells = (apart // cell)[:, None] + np.arange(many)
    # Distinct (cell, warp) pairs as one number, sorted by cell.
    pairs = np.unique(cells * WARP + (threads // WARP)[:, None])
    cell_of, bits = pairs // WARP, _BITS[pairs % WARP]
    starts = np.flatnonzero(np.concatenate([[True], cell_of[1:] != cell_of[:-1]]))
    distinct = cell_of[starts]
    together = np.bitwise_or.reduceat(bits, starts)
    unbroken = int(distinct[-1] - distinct[0]) + 1 == len(distinct)
    return _Pattern(
        slice(int(distinct[0]), int(distinct[-1]) + 1) if unbroken else distinct,
        together,
        several=len(starts) < len(pairs),
    )


def add_warps(warps: Array, touched: Touch) -> None:
    """Add the warps of a request to its cells of `warps`, which holds a bit for each warp."""
    if touched.listed:
        np.bitwise_or.at(warps, touched.where, touched.bits)
    else:
        warps[touched.where] |= touched.bits
