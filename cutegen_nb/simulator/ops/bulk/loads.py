"""Bulk loads from global into shared memory, which complete at an mbarrier.

Global memory is read when the copy is issued. The data arrive when a thread waits at the mbarrier, never
before: a read in between sees the old contents, as it may on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.checkers.global_memory import RequestPart
from cutegen_nb.simulator.checkers.shared_entries import SharedAccess
from cutegen_nb.simulator.numbers.values import U32, Array
from cutegen_nb.simulator.ops.bulk.regions import Region
from cutegen_nb.simulator.ops.memory import global_ as global_ops
from cutegen_nb.simulator.ops.memory.global_traffic import GlobalForm
from cutegen_nb.simulator.ops.sync.mbarrier_objects import AsyncArrival, complete_bytes, mask_of, mbarriers_of
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.batch import Batch
from cutegen_nb.simulator.state.global_memory import UNSIGNED, Allocation

UNITS: dict[int, np.dtype[np.generic]] = {**UNSIGNED, 16: np.dtype(np.complex128)}
"""Bytes of a unit → dtype to copy it with; 16 bytes as one element, never computed with."""


@dataclass(slots=True)
class _Arriving:
    """Data of a bulk load that has not arrived."""

    region: Region
    """Units, one row for each destination."""
    ctas: Array
    """CTA whose memory each row is written to."""
    issuers: Array
    """Thread of that CTA to whom each row is attributed."""
    data: Array
    """Units read, in the dtype of their size."""
    instruction: Instruction
    """Instruction that issued the load."""
    signals: Array
    """CTA whose mbarrier each row arrives at."""
    from_afar: bool
    """True for data from another CTA of the cluster, which the race checker does not compare."""

    def access(self, lanes: Batch, rows: Array, verb: str) -> SharedAccess:
        """Access of some rows to shared memory, for the race checker."""
        request = self.region.chosen(rows).shared_request(lanes, self.ctas[rows], self.issuers[rows])
        return SharedAccess(self.instruction, request, self.region.unit, 1, verb)

    def announce(self, lanes: Batch) -> None:
        """Tell the race checker that the data are on their way."""
        if lanes.watch is not None and not self.from_afar:
            lanes.watch.copy_begun(lanes, self.access(lanes, np.arange(len(self.ctas)), "overwrites"))

    def land(self, lanes: Batch, rows: Array) -> None:
        """Write some rows to shared memory."""
        if lanes.watch is not None:
            access = self.access(lanes, rows, "writes")
            if self.from_afar:
                lanes.watch.written_from_afar(lanes, access)
            else:
                lanes.watch.write(lanes, None, access)
        memory = lanes.shared.view(UNITS[self.region.unit]).reshape(-1)
        memory[self.region.chosen(rows).flat(lanes, self.ctas[rows])] = self.data[rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Destinations of loaded data, one for each CTA that receives them; int64 arrays of one length."""

    rows: Array
    """Row of the region, which is a thread's."""
    ctas: Array
    """Place in the batch of the CTA whose shared memory they go to."""
    barriers: Array
    """Byte address of the mbarrier."""
    signals: Array
    """Place in the batch of the CTA whose mbarrier it is: that of ``ctas``, or its pair's other CTA."""


def load(lanes: Batch, region: Region, to: Destination, form: GlobalForm, *, rounds: bool) -> None:
    """Start a load; its data and bytes arrive at an mbarrier.

    Args:
        lanes: the batch.
        region: units that the threads load.
        to: destinations, several for one thread in a multicast.
        form: instruction and tally.
        rounds: True if float32 numbers are rounded to tf32.

    Raises:
        OutOfBounds: a global address outside every allocation.
    """
    data = read_units(lanes, region, form)
    send(lanes, region, _to_tf32(data) if rounds else data, to, form.instruction)


def send(lanes: Batch, region: Region, data: Array, to: Destination, instruction: Instruction) -> None:
    """Send units that were read, (threads, units), to their destinations; they arrive at an mbarrier."""
    owners = region.threads[to.rows] // lanes.threads
    for far in (False, True):
        some = np.flatnonzero((to.ctas != owners) == far)
        if not len(some):
            continue
        rows, barriers = to.rows[some], to.barriers[some]
        threads = region.threads[rows] % lanes.threads
        arriving = _Arriving(
            region.chosen(rows),
            to.ctas[some],
            threads,
            data[rows],
            instruction,
            to.signals[some],
            from_afar=far,
        )
        arriving.announce(lanes)
        for address in np.unique(barriers):
            here = np.flatnonzero(barriers == address)
            # Rows at one distance from their mbarrier's CTA have CTAs of their own.
            distances = arriving.signals[here] - arriving.ctas[here]
            for distance in np.unique(distances):
                _expect(lanes, int(address), here[distances == distance], arriving)


def _expect(lanes: Batch, address: int, rows: Array, arriving: _Arriving) -> None:
    """Register rows of a load whose completion is signalled at the mbarrier at ``address``."""
    at = (arriving.signals[rows], arriving.issuers[rows])
    active = np.zeros((lanes.ctas, lanes.threads), np.bool_)
    active[at] = True
    key = ("mbarrier", address)

    def complete(due: Array) -> None:
        now = rows[np.broadcast_to(due, active.shape)[at]]
        arriving.land(lanes, now)
        lanes.bulk_loads -= len(now)
        if not lanes.bulk_loads and not lanes.async_copies and lanes.watch is not None:
            lanes.watch.copies_landed()
        landed = np.bincount(arriving.signals[now], minlength=lanes.ctas) * arriving.region.bytes_each
        complete_bytes(lanes, arriving.instruction, address, landed)
        lanes.released(mask_of(lanes, due), key)

    lanes.bulk_loads += len(rows)
    known = mbarriers_of(lanes)
    known.arrivals.append(AsyncArrival(address=address, lanes=active, complete=complete))
    known.changed()  # a thread that waits may now find its phase complete


def read_units(lanes: Batch, region: Region, form: GlobalForm) -> Array:
    """Read the units of a region, zeros where they are outside the tensor; (threads, units)."""
    request = region.global_request()
    count(region, len(request.addresses), form)
    data = np.zeros(region.remote.shape, UNITS[region.unit])
    if not len(request.addresses):
        return data
    read = np.empty(len(request.addresses), data.dtype)
    for allocation, positions in global_ops.resolve(lanes, request, form):
        some = request.some(positions)
        if lanes.global_watch is not None:
            width = max(1, region.element)
            part = RequestPart(some, allocation, width, region.unit // width, form.instruction)
            lanes.global_watch.loading(lanes, part)
        elements, start = units_of(allocation, region.unit)
        values = elements[(some.addresses - start) // region.unit]
        if positions is None:
            read = values
        else:
            read[positions] = values
    if lanes.accesses is not None:
        lanes.accesses.touched(lanes, request, form.size, form.tally, stores=False)
    data[region.inside] = read
    return data


def _to_tf32(data: Array) -> Array:
    """Round float32 numbers to tf32's 10 fraction bits, to nearest.

    The CUDA driver API names the type of such maps only; rounding to nearest, ties to even, is an assumption.
    """
    bits = np.ascontiguousarray(data).view(U32)
    special = (bits & U32.type(0x7F800000)) == U32.type(0x7F800000)
    half = U32.type(0x0FFF) + ((bits >> U32.type(13)) & U32.type(1))
    rounded = (bits + half) & U32.type(0xFFFFE000)
    return np.where(special, bits, rounded).view(data.dtype)


def shared_units(lanes: Batch, region: Region) -> Array:
    """Read the units of a region whose ``remote`` addresses lie in the thread's own shared memory."""
    memory = lanes.shared.view(UNITS[region.unit])
    rows = region.threads // lanes.threads
    units: Array = memory[rows[:, None], region.remote // region.unit]
    return units


def units_of(allocation: Allocation, unit: int) -> tuple[Array, int]:
    """Memory of an allocation as units, and the address of the first."""
    if unit in UNSIGNED:
        return allocation.elements(unit)
    skip = -allocation.address % unit
    length = (allocation.end - allocation.address - skip) // unit * unit
    return allocation.bytes[skip : skip + length].view(UNITS[unit]), allocation.address + skip


def count(region: Region, units: int, form: GlobalForm) -> None:
    """Count one request for each thread, and the bytes of the units inside the tensor."""
    tally = form.tally
    tally.requests += len(region.threads)
    if form.atomic:
        tally.bytes_atomic += units * region.unit
    elif form.stores:
        tally.bytes_stored += units * region.unit
    else:
        tally.bytes_loaded += units * region.unit
