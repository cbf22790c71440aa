"""One access to shared memory, thread by thread and cell by cell: the slow check of a suspicious request."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.numbers.values import Array, Value
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.addressing import ListedAddresses, SeparableAddresses
from cutegen_nb.simulator.state.batch import WARP, Batch
from cutegen_nb.simulator.state.global_memory import UNSIGNED

STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"})
"""Modifiers of accesses that threads synchronise through (PTX ISA, "Memory Consistency Model")."""
_BITS: Array = np.uint32(1) << np.arange(WARP, dtype=np.uint32)
"""Bit of each warp of a CTA; a CTA has at most 32 warps."""


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """One request to shared memory."""

    instruction: Instruction
    """Instruction that makes the request."""
    request: SeparableAddresses | ListedAddresses
    """Addresses, inside shared memory and aligned."""
    width: int
    """Bytes of an element."""
    count: int
    """Elements per thread."""
    verb: str
    """Verb for messages: ``reads``, ``writes``, ``overwrites``, ``updates``."""
    data: list[Value] | None = None
    """Values that a store writes, as unsigned bits, element by element; None for a load or an atomic."""

    @property
    def size(self) -> int:
        """Bytes per thread."""
        return self.width * self.count


@dataclass(frozen=True, slots=True)
class Entries:
    """Columns of equal length, one entry for each cell of each thread of a request."""

    row: Array
    """Row of the cell in the arrays of :class:`SharedMemoryChecker`."""
    cell: Array
    """Number of the cell in its CTA's shared memory."""
    lane: Array
    """Index of the thread into the flattened batch."""
    warp: Array
    """Warp of the thread in its CTA."""
    bit: Array
    """Bit of the warp."""
    part: Array
    """Number of the cell among the thread's cells, from 0."""

    def other(self, position: int) -> int:
        """Lane of a thread of another warp at the same cell as the entry at ``position``."""
        same = (self.row == self.row[position]) & (self.cell == self.cell[position])
        return int(self.lane[np.flatnonzero(same & (self.warp != self.warp[position]))[0]])


def entries(
    lanes: Batch, request: SeparableAddresses | ListedAddresses, size: int, cell: int, rows: int
) -> Entries:
    """Return the entries of a request; one that is the same in every CTA is listed for ``rows`` CTAs."""
    if isinstance(request, SeparableAddresses):
        threads = np.arange(lanes.threads) if request.active is None else request.active
        addresses = np.tile(np.broadcast_to(request.row + int(request.column[0]), threads.shape), rows)
        lane = (np.arange(rows)[:, None] * lanes.threads + threads).ravel()
    else:
        lane = np.arange(lanes.lane_count) if request.lanes is None else request.lanes
        addresses = request.addresses
    many = max(1, size // cell)
    cta, thread = np.divmod(lane, lanes.threads)
    warp = np.repeat(thread // WARP, many)
    return Entries(
        row=np.repeat(cta if rows > 1 else np.zeros_like(cta), many),
        cell=((addresses // cell)[:, None] + np.arange(many)).ravel(),
        lane=np.repeat(lane, many),
        warp=warp,
        bit=_BITS[warp],
        part=np.tile(np.arange(many), len(lane)),
    )


def changes(lanes: Batch, access: SharedAccess, each: Entries) -> Array:
    """True for each entry whose cell holds something else than what the store writes there."""
    assert access.data is not None
    width = access.data[0].dtype.itemsize
    cell = access.size // (int(each.part.max()) + 1) if len(each.part) else 1
    if width not in UNSIGNED or width < cell:
        return np.ones(len(each.cell), np.bool_)
    parts = width // cell
    memory = lanes.shared.view(UNSIGNED[cell])
    stored = np.stack([np.broadcast_to(one, (lanes.ctas, lanes.threads)) for one in access.data])
    element, within = each.part // parts, each.part % parts
    shift = (within * 8 * cell).astype(UNSIGNED[width])
    cta, thread = np.divmod(each.lane, lanes.threads)
    if int(each.row.max()) or isinstance(access.request, ListedAddresses) or lanes.ctas == 1:
        now, wanted = memory[cta, each.cell], stored[element, cta, thread]
        return now != (wanted >> shift).astype(UNSIGNED[cell])
    # One row stands for all CTAs, whose values may differ.
    now, wanted = memory[:, each.cell], stored[element, :, thread].T
    return (now != (wanted >> shift).astype(UNSIGNED[cell])).any(axis=0)


def differs(lanes: Batch, access: SharedAccess) -> bool:
    """Return whether memory differs, right after a store, from what some thread stored."""
    assert access.data is not None
    if access.width not in UNSIGNED:
        return False
    words = lanes.shared.view(UNSIGNED[access.width])
    request = access.request
    for index, one in enumerate(access.data):
        if isinstance(request, SeparableAddresses):
            threads = slice(None) if request.active is None else request.active
            place = (request.row + int(request.column[0])) // access.width + index
            stored = np.broadcast_to(one, (lanes.ctas, lanes.threads))[:, threads]
            if (words.take(place, axis=1) != stored).any():
                return True
            continue
        lane = np.arange(lanes.lane_count) if request.lanes is None else request.lanes
        place = request.addresses // access.width + index
        stored = np.broadcast_to(one, (lanes.ctas, lanes.threads)).reshape(-1)[lane]
        if (words[lane // lanes.threads, place] != stored).any():
            return True
    return False


def is_strong(instruction: Instruction) -> bool:
    """Return whether threads may synchronise through an access of this instruction."""
    return not STRONG.isdisjoint(instruction.modifiers)
