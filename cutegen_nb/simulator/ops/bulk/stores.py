"""Bulk stores and reductions from shared to global memory, and their groups.

Shared memory is read when a wait covers the store's group, or at the kernel's end, never before: a store into
the source in between changes what is stored, as it may on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.checkers.global_memory import RequestPart
from cutegen_nb.simulator.checkers.shared_entries import SharedAccess
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.ops.bulk.loads import UNITS, count, units_of
from cutegen_nb.simulator.ops.bulk.regions import Region
from cutegen_nb.simulator.ops.memory import global_ as global_ops
from cutegen_nb.simulator.ops.memory.atomics import AtomicFunction, apply
from cutegen_nb.simulator.ops.memory.global_traffic import GlobalForm
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.global_memory import UNSIGNED


@dataclass(slots=True)
class _BulkStore:
    """Bulk store or reduction that is not complete."""

    region: Region
    """Units, one row for each thread."""
    group: Array
    """Number of the group of each row."""
    form: GlobalForm
    """Instruction and tally."""
    function: AtomicFunction | None
    """Function of a reduction; None for a store."""


def store(lanes: Batch, region: Region, form: GlobalForm, function: AtomicFunction | None) -> None:
    """Start a bulk store or, with ``function``, a reduction."""
    _read_by(lanes, region, form)
    groups = _groups(lanes).reshape(-1)[region.threads]
    lanes.bulk_stores.append(_BulkStore(region, groups, form, function))


def commit(lanes: Batch, mask: Mask | None) -> None:
    """Close the current bulk group of the active threads (``commit_group``)."""
    groups = _groups(lanes)
    groups += 1 if mask is None else mask.array


def complete(lanes: Batch, mask: Mask | None, left: int | None) -> None:
    """Complete the stores of the active threads, except those of the ``left`` newest committed groups.

    ``left`` None completes all of them, those of no group included.

    Raises:
        OutOfBounds: a global address outside every allocation.
    """
    if not lanes.bulk_stores:
        return
    groups = _groups(lanes).reshape(-1)
    active = np.ones(lanes.lane_count, np.bool_)
    if mask is not None:
        active = np.broadcast_to(mask.array, (lanes.ctas, lanes.threads)).reshape(-1)
    kept = []
    for one in lanes.bulk_stores:
        threads = one.region.threads
        due = active[threads] if left is None else active[threads] & (one.group < groups[threads] - left)
        if due.any():
            _carry_out(lanes, one.region.chosen(due), one)
        if not due.all():
            one.region, one.group = one.region.chosen(~due), one.group[~due]
            kept.append(one)
    lanes.bulk_stores = kept


def _groups(lanes: Batch) -> Array:
    if lanes.bulk_groups is None:
        lanes.bulk_groups = np.zeros((lanes.ctas, lanes.threads), np.int64)
    return lanes.bulk_groups


def _read_by(lanes: Batch, region: Region, form: GlobalForm) -> None:
    """Tell the race checker that the threads of a region read its shared memory."""
    if lanes.watch is None:
        return
    ctas, threads = np.divmod(region.threads, lanes.threads)
    request = region.shared_request(lanes, ctas, threads)
    lanes.watch.read(lanes, None, SharedAccess(form.instruction, request, region.unit, 1, "reads"))


def _carry_out(lanes: Batch, region: Region, one: _BulkStore) -> None:
    """Read shared memory and change global memory."""
    form = one.form
    _read_by(lanes, region, form)
    memory = lanes.shared.view(UNITS[region.unit]).reshape(-1)
    data = memory[region.flat(lanes, region.threads // lanes.threads)][region.inside]
    request = region.global_request()
    count(region, len(request.addresses), form)
    for allocation, positions in global_ops.resolve(lanes, request, form):
        some = request.some(positions)
        values = data if positions is None else data[positions]
        if lanes.global_watch is not None and one.function is None:
            width = min(region.element, max(UNSIGNED))
            part = RequestPart(some, allocation, width, region.unit // width, form.instruction)
            lanes.global_watch.storing(lanes, part)
        elements, start = units_of(allocation, region.unit)
        index = (some.addresses - start) // region.unit
        if one.function is None:
            elements[index] = values
        else:
            apply(elements, index, [values], one.function, wanted=False)
    if lanes.accesses is not None:
        lanes.accesses.touched(lanes, request, form.size, form.tally, stores=True)
