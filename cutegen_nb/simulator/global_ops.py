"""Loads from and stores to global memory, with their sectors.

A request whose addresses separate into CTA and thread parts is read as strided views, counted for one CTA and
multiplied; any other is read address by address.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.core.profile import SECTOR_BYTES
from cutegen_nb.simulator import addressing
from cutegen_nb.simulator.addressing import At, Listed, Split, listed, listed_of, split
from cutegen_nb.simulator.counters import InstructionTally
from cutegen_nb.simulator.faults import in_bytes
from cutegen_nb.simulator.global_watch import Part
from cutegen_nb.simulator.lanes import Lanes, Mask
from cutegen_nb.simulator.memory import UNSIGNED, Allocation
from cutegen_nb.simulator.patterns import cta_sectors, request_sectors, runs_of
from cutegen_nb.simulator.ptx_model import Instruction
from cutegen_nb.simulator.shared_watch import STRONG
from cutegen_nb.simulator.values import Array, Value

_SHORT_RUN = 8
"""Runs shorter than this are gathered faster than copied."""
_FEW = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalForm:
    """What an instruction asks of memory, the addresses apart."""

    instruction: Instruction
    """For messages."""
    tally: InstructionTally
    """Where it is counted."""
    width: int
    """Bytes of an element."""
    count: int
    """Elements a thread."""
    stores: bool = False
    """Whether it writes."""
    atomic: bool = False
    """Whether it is an atomic or a reduction."""
    counted: bool = True
    """Whether it is global traffic; constants are not."""

    @property
    def size(self) -> int:
        """Bytes a thread."""
        return self.width * self.count


def load(lanes: Lanes, mask: Mask | None, at: At, form: GlobalForm) -> list[Value]:
    """Elements at the addresses, each as unsigned bits of ``form.width`` bytes; zero in inactive lanes."""
    _synchronised(lanes, mask, form)
    request = split(mask, at)
    if request is not None:
        allocation = _separable(lanes, request, form)
        if allocation is not None:
            count(lanes, mask, form)
            count_split(lanes, mask, request, allocation, form)
            _watch_load(lanes, request, allocation, form)
            return [_read(lanes, request, allocation, form, index) for index in range(form.count)]
    one_by_one = listed(lanes, mask, at)
    count(lanes, mask, form)
    found = resolve(lanes, one_by_one, form)
    for allocation, positions in found:
        _watch_load(lanes, one_by_one.some(positions), allocation, form)
    results: list[Value] = []
    for index in range(form.count):
        gathered = np.zeros(lanes.lane_count, UNSIGNED[form.width])
        for allocation, positions in found:
            elements, start = allocation.elements(form.width)
            addresses = one_by_one.addresses if positions is None else one_by_one.addresses[positions]
            numbers = elements[(addresses - start) // form.width + index]
            where = targets(one_by_one, positions)
            if where is None:
                gathered = numbers
            else:
                gathered[where] = numbers
        results.append(gathered.reshape(lanes.ctas, lanes.threads))
    return results


def store(lanes: Lanes, mask: Mask | None, at: At, data: list[Value], form: GlobalForm) -> None:
    """Write elements, given as unsigned bits of ``form.width`` bytes."""
    _synchronised(lanes, mask, form)
    request = split(mask, at)
    if request is not None:
        allocation = _separable(lanes, request, form)
        if allocation is not None:
            count(lanes, mask, form)
            count_split(lanes, mask, request, allocation, form)
            watch, part = lanes.global_watch, _part(request, allocation, form, data)
            look = watch is not None and watch.storing(lanes, part)
            for index, one in enumerate(data):
                _write(request, allocation, form, index, one)
            if look and watch is not None:
                watch.stored(lanes, part)
            return
    one_by_one = listed(lanes, mask, at)
    count(lanes, mask, form)
    found = resolve(lanes, one_by_one, form)
    watch = lanes.global_watch
    parts = [_part(one_by_one.some(positions), allocation, form, data) for allocation, positions in found]
    again = [part for part in parts if watch is not None and watch.storing(lanes, part)]
    for index, one in enumerate(data):
        flat = np.broadcast_to(one, (lanes.ctas, lanes.threads)).reshape(-1)
        for allocation, positions in found:
            elements, start = allocation.elements(form.width)
            addresses = one_by_one.addresses if positions is None else one_by_one.addresses[positions]
            where = targets(one_by_one, positions)
            elements[(addresses - start) // form.width + index] = flat if where is None else flat[where]
    for part in again:
        if watch is not None:
            watch.stored(lanes, part)


def _synchronised(lanes: Lanes, mask: Mask | None, form: GlobalForm) -> None:
    if lanes.watch is not None and not STRONG.isdisjoint(form.instruction.modifiers):
        lanes.flag_accessed(mask, form.instruction, stores=form.stores)


def _watch_load(lanes: Lanes, request: Split | Listed, allocation: Allocation, form: GlobalForm) -> None:
    if lanes.global_watch is not None:
        lanes.global_watch.loading(lanes, _part(request, allocation, form, []))


def _part(request: Split | Listed, allocation: Allocation, form: GlobalForm, data: list[Value]) -> Part:
    return Part(request, allocation, form.width, form.count, form.instruction, tuple(data))


def targets(request: Listed, positions: Array | None) -> Array | None:
    """Lanes of some of a request's addresses; None for all lanes of the batch."""
    if positions is None:
        return request.lanes
    return positions if request.lanes is None else request.lanes[positions]


# -- checks --------------------------------------------------------------------------------------------------
def _separable(lanes: Lanes, request: Split, form: GlobalForm) -> Allocation | None:
    """The one allocation that holds the request; None where several might, or where there is a fault."""
    allocation = lanes.memory.find(request.low(), request.high() + form.size)
    if allocation is None or not request.all_aligned(form.size):
        return None
    return allocation


def resolve(lanes: Lanes, request: Listed, form: GlobalForm) -> list[tuple[Allocation, Array | None]]:
    """Allocations with the positions of the addresses they hold (None for all), counted.

    Raises:
        OutOfBounds: an address outside all of them.
        Misaligned: an address that is no multiple of the width.
    """
    addresses = request.addresses
    if not len(addresses):
        return []
    low, high = int(addresses.min()), int(addresses.max())
    found: list[tuple[Allocation, Array | None]] = []
    whole = lanes.memory.find(low, high + form.size)
    if whole is not None:
        found.append((whole, None))
    else:
        found.extend(_groups(lanes, request, form))
    if int(np.bitwise_or.reduce(addresses)) & (form.size - 1):
        where = lanes.memory.describe(
            int(addresses[np.flatnonzero(addresses & (form.size - 1))[0]]), form.size, form.width
        )
        addressing.raise_misaligned(lanes, request, form.size, form.instruction, where)
    for allocation, positions in found:
        _count_listed(lanes, request, allocation, positions, form)
    return found


def _groups(lanes: Lanes, request: Listed, form: GlobalForm) -> list[tuple[Allocation, Array | None]]:
    left = np.arange(len(request.addresses))
    found: list[tuple[Allocation, Array | None]] = []
    while len(left):
        address = int(request.addresses[left[0]])
        allocation = lanes.memory.find(address, address + form.size)
        if allocation is None:
            verb = "writes" if form.stores else "reads"
            addressing.raise_outside(
                lanes, request.lane(int(left[0])), form.instruction,
                f"{verb} {in_bytes(form.size)} {lanes.memory.describe(address, form.size, form.width)}",
            )  # fmt: skip
        inside = (request.addresses[left] >= allocation.address) & (
            request.addresses[left] + form.size <= allocation.end
        )
        found.append((allocation, left[inside]))
        left = left[~inside]
    return found


# -- data ----------------------------------------------------------------------------------------------------
def _strided(request: Split, allocation: Allocation, form: GlobalForm, index: int) -> Array | None:
    """The elements as a view of shape (columns, columns, rows, rows); None if they lie irregularly."""
    row = runs_of(request.row)
    if row is None or (row.inner < _SHORT_RUN and len(request.row) > _FEW):
        return None
    column = runs_of(request.column)
    if column is None:
        return None
    return np.ndarray(
        (column.outer, column.inner, row.outer, row.inner),
        UNSIGNED[form.width],
        allocation.bytes.data,
        column.first + row.first + index * form.width - allocation.address,
        (column.outer_step, column.inner_step, row.outer_step, row.inner_step),
    )


def _indices(request: Split, start: int, form: GlobalForm, index: int) -> Array:
    first = request.column - start
    return ((first[:, None] + request.row[None]) >> (form.width.bit_length() - 1)) + index


def _read(lanes: Lanes, request: Split, allocation: Allocation, form: GlobalForm, index: int) -> Value:
    shape = (len(request.column), len(request.row))
    view = _strided(request, allocation, form, index)
    if view is not None:
        data = view.copy().reshape(shape)
    else:
        elements, start = allocation.elements(form.width)
        data = elements[_indices(request, start, form, index)]
    if request.active is not None and shape[1] > 1:
        spread = np.zeros((shape[0], lanes.threads), data.dtype)
        spread[:, request.active] = data
        return spread
    return data[0, 0] if data.size == 1 else data


def _write(request: Split, allocation: Allocation, form: GlobalForm, index: int, data: Value) -> None:
    data = fitted(request, data)
    shape = (len(request.column), len(request.row))
    view = _strided(request, allocation, form, index)
    if view is not None:
        view[...] = np.broadcast_to(data, shape).reshape(view.shape)
        return
    elements, start = allocation.elements(form.width)
    elements[_indices(request, start, form, index)] = data


def fitted(request: Split, data: Value) -> Value:
    """Values of the active threads, the last one where many write to one place."""
    if not data.ndim:
        return data
    if request.active is not None and data.shape[1] > 1:
        data = data[:, request.active]
    if len(request.row) == 1:
        data = data[:, -1:]
    return data[-1:] if len(request.column) == 1 else data


# -- counts --------------------------------------------------------------------------------------------------
def count(lanes: Lanes, mask: Mask | None, form: GlobalForm) -> None:
    """Count requests and bytes."""
    if not form.counted:
        return
    tally = form.tally
    threads = lanes.lane_count if mask is None else mask.threads
    tally.requests += lanes.warps if mask is None else mask.warps
    if form.atomic:
        tally.bytes_atomic += threads * form.size
    elif form.stores:
        tally.bytes_stored += threads * form.size
    else:
        tally.bytes_loaded += threads * form.size


def _add_sectors(form: GlobalForm, sectors: int, ideal: int) -> None:
    tally = form.tally
    tally.ideal += ideal
    if form.atomic:
        tally.atomic_sectors += sectors
    elif form.stores:
        tally.store_sectors += sectors
    else:
        tally.load_sectors += sectors


def _count_listed(
    lanes: Lanes, request: Listed, allocation: Allocation, positions: Array | None, form: GlobalForm
) -> None:
    if not form.counted:
        return
    addresses = request.addresses if positions is None else request.addresses[positions]
    where = targets(request, positions)
    warps = lanes.warp_of_lane if where is None else lanes.warp_of_lane[where]
    _add_sectors(form, *request_sectors(addresses, warps, form.size))
    flags, first = lanes.tally.touched(allocation)
    flags[addresses // SECTOR_BYTES - first] = True
    allocation.read |= form.atomic or not form.stores
    if form.stores or form.atomic:
        allocation.about_to_store()


def count_split(
    lanes: Lanes, mask: Mask | None, request: Split, allocation: Allocation, form: GlobalForm
) -> None:
    """Count the sectors of a separable request for one CTA of each alignment, and multiply."""
    if not form.counted:
        return
    flags, first = lanes.tally.touched(allocation)
    allocation.read |= form.atomic or not form.stores
    if form.stores or form.atomic:
        allocation.about_to_store()
    if len(request.row) == 1:
        warps = lanes.warps if mask is None else mask.warps
        _add_sectors(form, warps, warps)
        flags[(request.column + request.row[0]) // SECTOR_BYTES - first] = True
        return
    warp_of = lanes.warp_of_thread if request.active is None else lanes.warp_of_thread[request.active]
    repeat = lanes.ctas // len(request.column)
    phases = request.column & (SECTOR_BYTES - 1)
    if (phases == phases[0]).all():
        groups = [(int(phases[0]), request.column)]
    else:
        groups = [(int(phase), request.column[phases == phase]) for phase in np.unique(phases)]
    for phase, column in groups:
        sectors, ideal, distinct = cta_sectors(request.row, warp_of, phase, form.size)
        many = len(column) * repeat
        _add_sectors(form, sectors * many, ideal * many)
        _mark(flags, column // SECTOR_BYTES - first, distinct)


def _mark(flags: Array, bases: Array, distinct: Array) -> None:
    """Set the flags of ``bases + distinct``, by slices where they are contiguous."""
    length = len(distinct)
    if int(distinct[-1] - distinct[0]) + 1 != length:
        flags[bases[:, None] + distinct[None]] = True
        return
    low = bases + int(distinct[0])
    if len(low) == 1 or (np.diff(low) == length).all():
        flags[int(low[0]) : int(low[-1]) + length] = True
    elif len(low) <= _FEW:
        for one in low:
            flags[int(one) : int(one) + length] = True
    else:
        flags[low[:, None] + np.arange(length)[None]] = True


__all__ = ["GlobalForm", "count", "fitted", "listed_of", "load", "resolve", "store", "targets"]
