"""Loads from and stores to the shared memory of other CTAs of a cluster (``ld.shared::cluster``, ``st``).

The race checker does not compare accesses of different CTAs. It notes only that a remote store wrote a place.
"""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.checkers.shared_entries import SharedAccess
from cutegen_nb.simulator.numbers.values import Array, Value
from cutegen_nb.simulator.ops.memory import shared
from cutegen_nb.simulator.ops.memory.shared import SharedAccessForm
from cutegen_nb.simulator.ptx.faults import in_bytes
from cutegen_nb.simulator.state.addressing import (
    AddressOperand,
    ListedAddresses,
    listed,
    raise_misaligned,
    raise_outside,
)
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.clusters import OFFSET, offsets_of, rows_of
from cutegen_nb.simulator.state.global_memory import UNSIGNED


def load(lanes: Batch, mask: Mask | None, at: AddressOperand, form: SharedAccessForm) -> list[Value]:
    """Load elements of shared memory in a cluster, as unsigned bits; unspecified in inactive lanes.

    Raises:
        OutOfBounds: an address outside a CTA's shared memory, or of a CTA that the cluster does not have.
        Misaligned: an address that is no multiple of the size.
    """
    request = listed(lanes, mask, at)
    if not is_far(request):
        return shared.load(lanes, mask, at, form)
    rows, offsets = places(lanes, request, form)
    form.tally.shared_loaded += len(offsets) * form.size
    words = lanes.shared.view(UNSIGNED[form.width])
    results = []
    for index in range(form.count):
        data = words[rows, offsets // form.width + index]
        if request.lanes is not None:
            spread = np.zeros(lanes.lane_count, data.dtype)
            spread[request.lanes] = data
            data = spread
        results.append(data.reshape(lanes.ctas, lanes.threads))
    return results


def store(
    lanes: Batch, mask: Mask | None, at: AddressOperand, data: list[Value], form: SharedAccessForm
) -> None:
    """Store elements, given as unsigned bits, to shared memory in a cluster.

    Raises:
        OutOfBounds: an address outside a CTA's shared memory, or of a CTA that the cluster does not have.
        Misaligned: an address that is no multiple of the size.
    """
    request = listed(lanes, mask, at)
    if not is_far(request):
        shared.store(lanes, mask, at, data, form)
        return
    rows, offsets = places(lanes, request, form)
    form.tally.shared_stored += len(offsets) * form.size
    if lanes.watch is not None:
        there = ListedAddresses(offsets, rows * lanes.threads)
        lanes.watch.written_from_afar(
            lanes, SharedAccess(form.instruction, there, form.width, form.count, "writes")
        )
    words = lanes.shared.view(UNSIGNED[form.width])
    for index, one in enumerate(data):
        flat = np.broadcast_to(one, (lanes.ctas, lanes.threads)).reshape(-1)
        words[rows, offsets // form.width + index] = flat if request.lanes is None else flat[request.lanes]


def is_far(request: ListedAddresses) -> bool:
    """Return whether any address comes from ``mapa``."""
    return len(request.addresses) > 0 and int(request.addresses.max()) > OFFSET


def places(lanes: Batch, request: ListedAddresses, form: SharedAccessForm) -> tuple[Array, Array]:
    """CTA in the batch and byte offset of each address, checked."""
    threads = np.arange(lanes.lane_count) if request.lanes is None else request.lanes
    rows = rows_of(request.addresses, threads // lanes.threads, lanes.cluster_ctas)
    offsets = offsets_of(request.addresses)
    other = rows // lanes.cluster_ctas != threads // lanes.threads // lanes.cluster_ctas
    outside = (offsets < 0) | (offsets + form.needed > lanes.shared_limit) | other
    if outside.any():
        position = int(np.flatnonzero(outside)[0])
        verb = "writes" if form.stores else "reads"
        where = (
            "of a CTA that its cluster does not have"
            if other[position]
            else f"of a CTA that has {lanes.shared_limit} bytes"
        )
        raise_outside(
            lanes, request.lane(position), form.instruction,
            f"{verb} {in_bytes(form.size)} at byte {int(offsets[position])} of shared memory {where}",
        )  # fmt: skip
    if (offsets & (form.size - 1)).any():
        raise_misaligned(lanes, request, form.size, form.instruction, "in shared memory of the cluster")
    return rows, offsets
