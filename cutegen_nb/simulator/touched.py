"""Which cells of shared memory a request touches, and by which warps.

A cell is as wide as the program's narrowest access to shared memory, at most a 4-byte word: two threads that
write different halves of one word do not meet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutegen_nb.simulator.addressing import Listed, Split
from cutegen_nb.simulator.lanes import WARP, Lanes
from cutegen_nb.simulator.ptx_model import TYPE_BYTES, Instruction
from cutegen_nb.simulator.values import Array

WORD = 4
"""Bytes of the widest cell."""
_ELEMENTS = frozenset({"ld", "ldu", "st", "atom", "red"})
_ELSEWHERE = {
    "shared": frozenset({"global", "const", "local", "param"}),
    "local": frozenset({"global", "const", "shared"}),
}
"""Windows that an access to another space names; calls keep their parameters in local memory."""
_BITS: Array = np.uint32(1) << np.arange(WARP, dtype=np.uint32)


@dataclass(frozen=True, slots=True)
class Touch:
    """Cells that one request touches."""

    where: tuple[Any, Any]
    """Index of them in arrays of shape (rows, cells)."""
    bits: Array
    """Warps at each cell, as bits."""
    several: bool
    """Whether two warps may meet at a cell."""
    listed: bool
    """Whether a cell may be named more than once, and each CTA has cells of its own."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    cells: Array | slice
    bits: Array
    several: bool


_patterns: dict[tuple[bytes, bytes, int, int, int], _Pattern] = {}
_CACHED = 10_000


def cell_bytes(instructions: Iterable[Instruction], space: str) -> int:
    """Bytes of a cell of ``shared`` or ``local`` memory for a program with these instructions: 1, 2 or 4."""
    widths = [
        TYPE_BYTES.get(item.modifiers[-1], WORD)
        for item in instructions
        if item.opcode in _ELEMENTS
        and item.modifiers
        and not any(one.split("::")[0] in _ELSEWHERE[space] for one in item.modifiers)
    ]
    return min([WORD, *widths])


def touch(lanes: Lanes, request: Split | Listed, size: int, cell: int) -> Touch:
    """Cells of a request that was checked: inside shared memory and aligned."""
    if isinstance(request, Split):
        return _same_in_all(lanes, request, size, cell)
    index = np.arange(lanes.lane_count) if request.lanes is None else request.lanes
    cta, thread = np.divmod(index, lanes.threads)
    many = max(1, size // cell)
    cells = (request.addresses // cell)[:, None] + np.arange(many)
    bits = _BITS[thread // WARP]
    where = (np.repeat(cta, many), cells.ravel())
    return Touch(where, np.repeat(bits, many), several=lanes.warps_per_cta > 1, listed=True)


def _same_in_all(lanes: Lanes, request: Split, size: int, cell: int) -> Touch:
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
