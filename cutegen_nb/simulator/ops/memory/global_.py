"""Loads from and stores to global memory.

A request whose addresses separate into CTA and thread parts is accessed as strided views. Any other request
is handled address by address.
"""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.checkers.global_memory import RequestPart
from cutegen_nb.simulator.checkers.shared_entries import STRONG
from cutegen_nb.simulator.numbers.values import Array, Value
from cutegen_nb.simulator.ops.memory.global_traffic import (
    GlobalForm,
    count,
    count_listed,
    count_split,
    targets,
)
from cutegen_nb.simulator.ptx.faults import in_bytes
from cutegen_nb.simulator.state import addressing
from cutegen_nb.simulator.state.access_patterns import runs_of
from cutegen_nb.simulator.state.addressing import (
    AddressOperand,
    ListedAddresses,
    SeparableAddresses,
    listed,
    split,
)
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.global_memory import UNSIGNED, Allocation

_SHORT_RUN = 8
"""Length in elements below which runs are gathered, which is faster than copying them."""
_FEW = 8
"""Addresses a CTA up to which short runs are copied too."""


def load(lanes: Batch, mask: Mask | None, at: AddressOperand, form: GlobalForm) -> list[Value]:
    """Load elements, each as unsigned bits of ``form.width`` bytes; unspecified in inactive lanes.

    Raises:
        OutOfBounds: an address outside all allocations.
        Misaligned: an address that is no multiple of the size.
    """
    _synchronised(lanes, mask, form)
    request = split(mask, at)
    if request is not None:
        allocation = _separable(lanes, request, form)
        if allocation is not None:
            count(lanes, mask, form)
            count_split(lanes, mask, request, allocation, form)
            _log(lanes, request, form)
            _watch_load(lanes, request, allocation, form)
            return [_read(lanes, request, allocation, form, index) for index in range(form.count)]
    one_by_one = listed(lanes, mask, at)
    count(lanes, mask, form)
    found = resolve(lanes, one_by_one, form)
    _log(lanes, one_by_one, form)
    for allocation, positions in found:
        _watch_load(lanes, one_by_one.some(positions), allocation, form)
    results: list[Value] = []
    for index in range(form.count):
        gathered = np.zeros(lanes.lane_count, UNSIGNED[form.width])
        for allocation, positions in found:
            addresses = one_by_one.addresses if positions is None else one_by_one.addresses[positions]
            numbers = _gathered(allocation, addresses, form, index)
            where = targets(one_by_one, positions)
            if where is None:
                gathered = numbers
            else:
                gathered[where] = numbers
        results.append(gathered.reshape(lanes.ctas, lanes.threads))
    return results


def store(lanes: Batch, mask: Mask | None, at: AddressOperand, data: list[Value], form: GlobalForm) -> None:
    """Store elements, given as unsigned bits of ``form.width`` bytes.

    Raises:
        OutOfBounds: an address outside all allocations.
        Misaligned: an address that is no multiple of the size.
    """
    _synchronised(lanes, mask, form)
    request = split(mask, at)
    if request is not None:
        allocation = _separable(lanes, request, form)
        if allocation is not None:
            count(lanes, mask, form)
            count_split(lanes, mask, request, allocation, form)
            _log(lanes, request, form)
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
    _log(lanes, one_by_one, form)
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


def _synchronised(lanes: Batch, mask: Mask | None, form: GlobalForm) -> None:
    """Report a strong access (``.volatile``, ``.acquire`` …), which may be a flag between threads."""
    if lanes.watch is not None and not STRONG.isdisjoint(form.instruction.modifiers):
        lanes.flag_accessed(mask, form.instruction, stores=form.stores)


def _log(lanes: Batch, request: SeparableAddresses | ListedAddresses, form: GlobalForm) -> None:
    """Tell the log of a sample of an access that counts as global traffic."""
    if lanes.accesses is not None and form.counted:
        lanes.accesses.touched(lanes, request, form.size, form.tally, stores=form.stores)


def _watch_load(
    lanes: Batch, request: SeparableAddresses | ListedAddresses, allocation: Allocation, form: GlobalForm
) -> None:
    if lanes.global_watch is not None:
        lanes.global_watch.loading(lanes, _part(request, allocation, form, []))


def _part(
    request: SeparableAddresses | ListedAddresses, allocation: Allocation, form: GlobalForm, data: list[Value]
) -> RequestPart:
    whole = form.needed // form.width
    return RequestPart(request, allocation, form.width, whole, form.instruction, tuple(data))


# -- checks --------------------------------------------------------------------------------------------------
def _separable(lanes: Batch, request: SeparableAddresses, form: GlobalForm) -> Allocation | None:
    """Allocation that holds the whole request, aligned; None if there is none.

    Then the request may span several allocations or be a fault, which :func:`resolve` finds out.
    """
    allocation = lanes.memory.find(request.low(), request.high() + form.width * form.count)
    if allocation is None or not request.all_aligned(form.size):
        return None
    return allocation


def resolve(
    lanes: Batch, request: ListedAddresses, form: GlobalForm
) -> list[tuple[Allocation, Array | None]]:
    """Find the allocations of a request, with the positions of their addresses (None for all); count sectors.

    Raises:
        OutOfBounds: an address outside all allocations.
        Misaligned: an address that is no multiple of the size.
    """
    addresses = request.addresses
    if not len(addresses):
        return []
    low, high = int(addresses.min()), int(addresses.max())
    found: list[tuple[Allocation, Array | None]] = []
    whole = lanes.memory.find(low, high + form.needed)
    if whole is not None:
        found.append((whole, None))
    else:
        found.extend(_groups(lanes, request, form))
    # Sizes are powers of two: an address is a multiple if its low bits are zero.
    if int(np.bitwise_or.reduce(addresses)) & (form.size - 1):
        where = lanes.memory.describe(
            int(addresses[np.flatnonzero(addresses & (form.size - 1))[0]]), form.size, form.width
        )
        addressing.raise_misaligned(lanes, request, form.size, form.instruction, where)
    for allocation, positions in found:
        count_listed(lanes, request, allocation, positions, form)
    return found


def _groups(
    lanes: Batch, request: ListedAddresses, form: GlobalForm
) -> list[tuple[Allocation, Array | None]]:
    left = np.arange(len(request.addresses))
    found: list[tuple[Allocation, Array | None]] = []
    while len(left):
        address = int(request.addresses[left[0]])
        allocation = lanes.memory.find(address, address + form.needed)
        if allocation is None:
            verb = "writes" if form.stores else "reads"
            addressing.raise_outside(
                lanes, request.lane(int(left[0])), form.instruction,
                f"{verb} {in_bytes(form.size)} {lanes.memory.describe(address, form.size, form.width)}",
            )  # fmt: skip
        inside = (request.addresses[left] >= allocation.address) & (
            request.addresses[left] + form.needed <= allocation.end
        )
        found.append((allocation, left[inside]))
        left = left[~inside]
    return found


# -- data ----------------------------------------------------------------------------------------------------
def _gathered(allocation: Allocation, addresses: Array, form: GlobalForm, index: int) -> Array:
    """Element ``index`` of each address; of an element that passes the allocation's end the bytes inside."""
    if form.unread and index == form.count - 1:
        first = addresses - allocation.address + index * form.width
        each = np.minimum(first[:, None] + np.arange(form.width), len(allocation.bytes) - 1)
        return allocation.bytes[each].view(UNSIGNED[form.width])[:, 0]
    elements, start = allocation.elements(form.width)
    return elements[(addresses - start) // form.width + index]


def _strided(
    request: SeparableAddresses, allocation: Allocation, form: GlobalForm, index: int
) -> Array | None:
    """View of the elements, two axes each for CTAs and for threads; None if their addresses are irregular."""
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


def _indices(request: SeparableAddresses, start: int, form: GlobalForm, index: int) -> Array:
    """Element index of each address, (ctas, threads); the shift divides by the width, a power of two."""
    first = request.column - start
    return ((first[:, None] + request.row[None]) >> (form.width.bit_length() - 1)) + index


def _read(
    lanes: Batch, request: SeparableAddresses, allocation: Allocation, form: GlobalForm, index: int
) -> Value:
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


def _write(
    request: SeparableAddresses, allocation: Allocation, form: GlobalForm, index: int, data: Value
) -> None:
    data = fitted(request, data)
    shape = (len(request.column), len(request.row))
    view = _strided(request, allocation, form, index)
    if view is not None:
        view[...] = np.broadcast_to(data, shape).reshape(view.shape)
        return
    elements, start = allocation.elements(form.width)
    elements[_indices(request, start, form, index)] = data


def fitted(request: SeparableAddresses, data: Value) -> Value:
    """Values of the active threads; where several write to one address, those of the last thread or CTA."""
    if not data.ndim:
        return data
    if request.active is not None and data.shape[1] > 1:
        data = data[:, request.active]
    if len(request.row) == 1:
        data = data[:, -1:]
    return data[-1:] if len(request.column) == 1 else data
