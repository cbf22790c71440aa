"""Checker of global memory: uninitialised reads, and results that depend on the order of CTAs.

Memory that a program allocated without a value holds a bit pattern that no arithmetic produces
(:class:`~cutegen_nb.simulator.state.global_memory.UninitialisedMarker`). An element that still holds it when
a kernel loads it was written neither by a kernel nor by PyTorch. The rule needs no list of the operations
that write, and it has no false positives.

CTAs of a grid run in no defined order. Some kernels have no means to order them: no atomic, fence or ordered
access. There it is a doubt if two CTAs store different values to one place, or if one loads from a sector of
32 bytes that another stored to. The doubt is settled by running the CTAs one by one in both directions
(:mod:`~cutegen_nb.simulator.machine.rerun`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cutegen_nb.core.profile import SECTOR_BYTES
from cutegen_nb.simulator.checkers.findings import CTA_ORDER, UNINITIALISED, Findings
from cutegen_nb.simulator.checkers.shared_entries import STRONG
from cutegen_nb.simulator.numbers.values import Array, Value
from cutegen_nb.simulator.ptx.faults import place
from cutegen_nb.simulator.ptx.model import Instruction, Register
from cutegen_nb.simulator.state.addressing import ListedAddresses, SeparableAddresses, listed_of
from cutegen_nb.simulator.state.batch import Batch
from cutegen_nb.simulator.state.global_memory import UNSIGNED, Allocation, UninitialisedMarker

_ORDERING = frozenset({"atom", "red", "fence", "membar"})
"""Opcodes by which CTAs may synchronise."""
_IN_CTA = frozenset({"mbarrier_init", "proxy"})
"""Modifiers of fences for mbarriers and for the asynchronous proxy, which order no CTAs."""
_CLOCKS = ("%clock", "%globaltimer")
"""Prefixes of the clock registers, whose values differ if the CTAs run in another order."""


def orders_ctas(instructions: Iterable[Instruction]) -> bool:
    """Return whether a kernel can order its CTAs (atomics, fences, ordered accesses) or reads a clock."""
    return any(
        item.opcode in _ORDERING
        or not STRONG.isdisjoint(item.modifiers)
        or any(isinstance(one, Register) and one.name.startswith(_CLOCKS) for one in item.operands)
        for item in instructions
        if item.opcode != "fence" or _IN_CTA.isdisjoint(item.modifiers)
    )


@dataclass(frozen=True, slots=True)
class RequestPart:
    """Part of a memory request that lies in one allocation."""

    request: SeparableAddresses | ListedAddresses
    """Addresses of the part."""
    allocation: Allocation
    """Allocation that holds the addresses."""
    width: int
    """Bytes of an element."""
    count: int
    """Elements per thread."""
    instruction: Instruction
    """Instruction that makes the request."""
    data: tuple[Value, ...] = ()
    """Values that a store writes, element by element; empty for a load."""

    def listed(self, lanes: Batch) -> ListedAddresses:
        """Return the addresses one by one."""
        return self.request if isinstance(self.request, ListedAddresses) else listed_of(lanes, self.request)


class GlobalWatch:
    """Checker of one launch's global memory; it keeps the CTA that stored to each sector.

    Sectors are followed only for kernels that cannot order their CTAs.
    """

    def __init__(self, findings: Findings, *, several: bool) -> None:
        self._findings = findings
        self._several = several
        """True if there are several CTAs and nothing orders them."""
        self._owners: dict[int, Array] = {}
        """Address of an allocation → number of the last CTA to store to each sector, -1 for none; int32."""

    def storing(self, lanes: Batch, part: RequestPart) -> bool:
        """Check a store before it is carried out; return whether :meth:`stored` has to check it after."""
        if not self._several:
            return False
        owner = self._owner(part.allocation)
        sectors, numbers = _sectors(lanes, part)
        if isinstance(sectors, slice):
            held = owner[sectors].reshape(len(numbers), -1)
            before = int(held.max())
            if before >= 0:
                self._stored_over(lanes, part)
            held[...] = numbers[:, None]
            return False
        before_each = owner[sectors]
        if ((before_each >= 0) & (before_each != numbers)).any():
            self._stored_over(lanes, part)
        owner[sectors] = numbers
        # CTAs of one batch may store to the same sector in this very request: then NumPy kept one of them.
        alike = (
            isinstance(part.request, SeparableAddresses) and len(part.request.column) == 1 and lanes.ctas > 1
        )
        mixed = alike or bool((owner[sectors] != numbers).any())
        return mixed and not self._findings.seen(CTA_ORDER, part.instruction)

    def stored(self, lanes: Batch, part: RequestPart) -> None:
        """Check a store after it was carried out: a missing value was overwritten by the same store."""
        each = part.listed(lanes)
        lost = _unlike(lanes, each, part)
        if lost.any():
            self._doubt(lanes, part, each, int(np.flatnonzero(lost)[0]), "writes")

    def loading(self, lanes: Batch, part: RequestPart) -> None:
        """Check a load: elements that nobody wrote, and sectors that another CTA stored to."""
        if part.allocation.poison is not None:
            self._unwritten(lanes, part, part.allocation.poison)
        owner = self._owners.get(part.allocation.address)
        if owner is None or self._findings.seen(CTA_ORDER, part.instruction):
            return
        each = part.listed(lanes)
        before = owner[each.addresses // SECTOR_BYTES - part.allocation.address // SECTOR_BYTES]
        other = (before >= 0) & (before != _cta_of(lanes, each))
        if other.any():
            self._doubt(lanes, part, each, int(np.flatnonzero(other)[0]), "reads")

    def _owner(self, allocation: Allocation) -> Array:
        owner = self._owners.get(allocation.address)
        if owner is None:
            first = allocation.address // SECTOR_BYTES
            owner = np.full((allocation.end - 1) // SECTOR_BYTES - first + 1, -1, np.int32)
            self._owners[allocation.address] = owner
        return owner

    def _stored_over(self, lanes: Batch, part: RequestPart) -> None:
        """Check a store to sectors that another CTA stored to: it must not replace values of this launch."""
        kept = part.allocation.before
        if kept is None or self._findings.seen(CTA_ORDER, part.instruction):
            return
        each = part.listed(lanes)
        elements, start = part.allocation.elements(part.width)
        skip = start - part.allocation.address
        before = kept[skip : skip + elements.nbytes].view(elements.dtype)
        # An element differs from the copy made before the launch if this launch has written it.
        index = (each.addresses - start) // part.width
        replaced = np.zeros(len(index), np.bool_)
        for number in range(len(part.data)):
            replaced |= elements[index + number] != before[index + number]
        replaced &= _unlike(lanes, each, part)
        if replaced.any():
            self._doubt(lanes, part, each, int(np.flatnonzero(replaced)[0]), "writes")

    def _doubt(
        self, lanes: Batch, part: RequestPart, each: ListedAddresses, position: int, verb: str
    ) -> None:
        thread, cta = lanes.place_of(each.lane(position))
        offset = int(each.addresses[position]) - part.allocation.address
        how = "over a value that" if verb == "writes" else "which"
        self._findings.add(
            CTA_ORDER,
            f"Thread {thread} of CTA {cta} {verb} element {offset // part.width} (byte {offset}) of tensor "
            f"{part.allocation.label!r}, {how} a thread elsewhere in the grid wrote in the same launch "
            f"({place(part.instruction)}), and nothing orders the two.",
            part.instruction, thread=thread, cta=cta, doubt=True,
        )  # fmt: skip

    def _unwritten(self, lanes: Batch, part: RequestPart, poison: UninitialisedMarker) -> None:
        """Note a load of elements that still hold the marker of uninitialised memory."""
        if part.width * part.count < poison.width or self._findings.seen(UNINITIALISED, part.instruction):
            return
        each = part.listed(lanes)
        elements, start = part.allocation.elements(poison.width)
        first = (each.addresses - start) // poison.width
        many = part.width * part.count // poison.width  # marked elements that a thread's request covers
        hit = np.stack([elements[first + number] == poison.bits for number in range(many)])
        if not hit.any():
            return
        number, position = (int(one[0]) for one in np.nonzero(hit))
        thread, cta = lanes.place_of(each.lane(position))
        at = int(each.addresses[position]) - part.allocation.address + number * poison.width
        self._findings.add(
            UNINITIALISED,
            f"Thread {thread} of CTA {cta} reads element {at // poison.width} of tensor "
            f"{part.allocation.label!r}, which was allocated without a value and never written "
            f"({place(part.instruction)}).",
            part.instruction, thread=thread, cta=cta, doubt=True,
        )  # fmt: skip


def _cta_of(lanes: Batch, each: ListedAddresses) -> Array:
    lane = np.arange(lanes.lane_count) if each.lanes is None else each.lanes
    return lanes.cta_numbers[lane // lanes.threads].astype(np.int32)


def _sectors(lanes: Batch, part: RequestPart) -> tuple[Array | slice, Array]:
    """Sectors of a request and the CTA number of each; a slice if the CTAs' sectors are contiguous."""
    request, allocation = part.request, part.allocation
    first = allocation.address // SECTOR_BYTES
    if isinstance(request, ListedAddresses):
        return request.addresses // SECTOR_BYTES - first, _cta_of(lanes, request)
    numbers = lanes.cta_numbers.astype(np.int32)
    if len(request.column) == 1:
        numbers = numbers[-1:]
    column = request.column + int(request.row.min())
    span = int(request.row.max()) - int(request.row.min())
    step = int(column[1] - column[0]) if len(column) > 1 else 0
    # Rows that begin on a sector and are about as far apart as they are wide fill what lies between.
    tight = span < step <= span + part.width * part.count and not step % SECTOR_BYTES
    if tight and not int(column[0]) % SECTOR_BYTES and (np.diff(column) == step).all():
        start = int(column[0]) // SECTOR_BYTES - first
        return slice(start, start + step // SECTOR_BYTES * len(column)), numbers
    sectors = (request.column[:, None] + request.row[None]) // SECTOR_BYTES - first
    return sectors.ravel(), np.repeat(numbers, len(request.row))


def _unlike(lanes: Batch, each: ListedAddresses, part: RequestPart) -> Array:
    """True for each thread whose values differ from what memory holds."""
    elements, start = part.allocation.elements(part.width)
    index = (each.addresses - start) // part.width
    unlike = np.zeros(len(index), np.bool_)
    for number, one in enumerate(part.data):
        flat = np.broadcast_to(one, (lanes.ctas, lanes.threads)).reshape(-1)
        stored = flat if each.lanes is None else flat[each.lanes]
        unlike |= elements[index + number] != stored.view(UNSIGNED[part.width])
    return unlike
