"""Loads from and stores to local memory, and loads from the kernel's parameters."""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.numbers.values import Array, Value
from cutegen_nb.simulator.ops.memory.shared import SharedAccessForm
from cutegen_nb.simulator.ptx.faults import in_bytes
from cutegen_nb.simulator.state import addressing
from cutegen_nb.simulator.state.addressing import AddressOperand, listed
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.global_memory import UNSIGNED


def load_local(lanes: Batch, mask: Mask | None, at: AddressOperand, form: SharedAccessForm) -> list[Value]:
    """Load elements of each thread's own local memory, as unsigned bits; unspecified in inactive lanes.

    Raises:
        OutOfBounds: an address outside local memory.
        Misaligned: an address that is no multiple of the size.
    """
    first = _local_index(lanes, mask, at, form)
    form.tally.local_loaded += form.size * (lanes.lane_count if mask is None else mask.threads)
    if lanes.local_watch is not None:
        lanes.local_watch.loaded(lanes, mask, first * form.width, form.needed, form.instruction)
    words = lanes.local.view(UNSIGNED[form.width])
    if isinstance(first, int):
        return [words[:, :, first + index].copy() for index in range(form.count)]
    flat = words.reshape(-1)
    results = []
    for index in range(form.count):
        data = np.zeros(lanes.lane_count, flat.dtype)
        data[_lanes_of(lanes, mask)] = flat[first + index]
        results.append(data.reshape(lanes.ctas, lanes.threads))
    return results


def store_local(
    lanes: Batch, mask: Mask | None, at: AddressOperand, data: list[Value], form: SharedAccessForm
) -> None:
    """Store elements, given as unsigned bits, to each thread's own local memory.

    Raises:
        OutOfBounds: an address outside local memory.
        Misaligned: an address that is no multiple of the size.
    """
    first = _local_index(lanes, mask, at, form)
    form.tally.local_stored += form.size * (lanes.lane_count if mask is None else mask.threads)
    if lanes.local_watch is not None:
        lanes.local_watch.stored(lanes, mask, first * form.width, form.size)
    words = lanes.local.view(UNSIGNED[form.width])
    for index, one in enumerate(data):
        if isinstance(first, int):
            place = words[:, :, first + index]
            if mask is None:
                place[...] = one
            else:
                np.copyto(place, one, where=mask.array)
            continue
        values = np.broadcast_to(one, (lanes.ctas, lanes.threads)).reshape(-1)[_lanes_of(lanes, mask)]
        words.reshape(-1)[first + index] = values


def _lanes_of(lanes: Batch, mask: Mask | None) -> Array:
    return np.arange(lanes.lane_count) if mask is None else mask.index


def _local_index(lanes: Batch, mask: Mask | None, at: AddressOperand, form: SharedAccessForm) -> int | Array:
    """Index of the first element: one number if all threads use one offset, else one an active thread."""
    limit = lanes.local_limit
    value, offset = at
    plain = addressing.wide(value.view(value.unsigned) if value.dtype is None else value)
    if (
        plain.ndim == 0
        and 0 <= int(plain) + offset <= limit - form.needed
        and not (int(plain) + offset) % form.size
    ):
        return (int(plain) + offset) // form.width
    request = listed(lanes, mask, at)
    outside = (request.addresses < 0) | (request.addresses + form.needed > limit)
    if outside.any():
        position = int(np.flatnonzero(outside)[0])
        addressing.raise_outside(
            lanes, request.lane(position), form.instruction,
            f"accesses {in_bytes(form.size)} at byte {int(request.addresses[position])} of its local memory "
            f"of {limit} bytes",
        )  # fmt: skip
    if (request.addresses & (form.size - 1)).any():
        addressing.raise_misaligned(lanes, request, form.size, form.instruction, "in local memory")
    return (_lanes_of(lanes, mask) * lanes.local.shape[2] + request.addresses) // form.width


def load_parameter(lanes: Batch, at: AddressOperand, form: SharedAccessForm) -> list[Value]:
    """Load elements of the kernel's parameters, as unsigned bits.

    Raises:
        OutOfBounds: an address outside the parameters.
    """
    value, offset = at
    plain = addressing.wide(value.view(value.unsigned) if value.dtype is None else value) + offset
    low, high = int(plain.min()), int(plain.max()) + form.needed
    if low < 0 or high > len(lanes.parameters):
        addressing.raise_outside(
            lanes, 0, form.instruction,
            f"reads byte {high - 1 if low >= 0 else low} of {len(lanes.parameters)} parameter bytes",
        )  # fmt: skip
    raw = np.frombuffer(lanes.parameters, np.uint8)
    results = []
    for index in range(form.count):
        first = plain + index * form.width
        # Put together byte by byte, little-endian.
        parts = [raw[first + byte].astype(UNSIGNED[form.width]) for byte in range(form.width)]
        total = parts[0]
        for byte, part in enumerate(parts[1:], 1):
            total = total | (part << UNSIGNED[form.width].type(8 * byte))
        results.append(total)
    return results
