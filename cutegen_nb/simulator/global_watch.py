"""Global memory watched: reads of what nobody wrote, and CTAs whose order decides a result.

Memory that a program allocated without a value holds a bit pattern that no arithmetic makes (``Poison``); an
element that still holds it when a kernel loads it was written by nobody, neither a kernel nor PyTorch.  The
rule needs no list of the operations that write, and accuses nobody falsely.

CTAs of a grid run in no order.  Where a kernel has no means to order them (no atomic, fence, or access with
an order), two CTAs that store different values to one place, or one that loads what another stored, are a
doubt, noted by 32-byte sectors, which running the CTAs one by one in both directions settles (``rerun``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cutegen_nb.core.profile import SECTOR_BYTES
from cutegen_nb.simulator.addressing import Listed, Split, listed_of
from cutegen_nb.simulator.faults import place
from cutegen_nb.simulator.findings import CTA_ORDER, UNINITIALISED, Findings
from cutegen_nb.simulator.lanes import Lanes
from cutegen_nb.simulator.memory import UNSIGNED, Allocation, Poison
from cutegen_nb.simulator.ptx_model import Instruction, Register
from cutegen_nb.simulator.shared_watch import STRONG
from cutegen_nb.simulator.values import Array, Value

_ORDERING = frozenset({"atom", "red", "fence", "membar"})
_CLOCKS = ("%clock", "%globaltimer")


def orders_ctas(instructions: Iterable[Instruction]) -> bool:
    """Whether a kernel has anything by which CTAs may wait for one another, or reads a clock."""
    return any(
        item.opcode in _ORDERING
        or not STRONG.isdisjoint(item.modifiers)
        or any(isinstance(one, Register) and one.name.startswith(_CLOCKS) for one in item.operands)
        for item in instructions
    )


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a request that lies in one allocation."""

    request: Split | Listed
    """Its addresses."""
    allocation: Allocation
    """Where they lie."""
    width: int
    """Bytes of an element."""
    count: int
    """Elements a thread."""
    instruction: Instruction
    """What makes it."""
    data: tuple[Value, ...] = ()
    """What a store writes, element by element."""

    def listed(self, lanes: Lanes) -> Listed:
        """Address by address."""
        return self.request if isinstance(self.request, Listed) else listed_of(lanes, self.request)


class GlobalWatch:
    """Which CTA stored to each sector in this launch; looked at only for kernels that cannot order CTAs."""

    def __init__(self, findings: Findings, *, several: bool) -> None:
        self._findings = findings
        self._several = several
        """Whether CTAs may run in another order: there are several, and nothing orders them."""
        self._owners: dict[int, Array] = {}

    def storing(self, lanes: Lanes, part: Part) -> bool:
        """Look at a store before it is carried out; says whether to look again afterwards."""
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
        alike = isinstance(part.request, Split) and len(part.request.column) == 1 and lanes.ctas > 1
        mixed = alike or bool((owner[sectors] != numbers).any())
        return mixed and not self._findings.seen(CTA_ORDER, part.instruction)

    def stored(self, lanes: Lanes, part: Part) -> None:
        """Look at a store after it was carried out: a value that is not there was overwritten at once."""
        each = part.listed(lanes)
        lost = _unlike(lanes, each, part)
        if lost.any():
            self._doubt(lanes, part, each, int(np.flatnonzero(lost)[0]), "writes")

    def loading(self, lanes: Lanes, part: Part) -> None:
        """Look at a load: does anything wait there that nobody wrote, or that another CTA did?"""
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

    def _stored_over(self, lanes: Lanes, part: Part) -> None:
        """A sector that another CTA stored to is stored to: are values of this launch replaced?"""
        kept = part.allocation.before
        if kept is None or self._findings.seen(CTA_ORDER, part.instruction):
            return
        each = part.listed(lanes)
        elements, start = part.allocation.elements(part.width)
        skip = start - part.allocation.address
        before = kept[skip : skip + elements.nbytes].view(elements.dtype)
        index = (each.addresses - start) // part.width
        replaced = np.zeros(len(index), np.bool_)
        for number in range(len(part.data)):
            replaced |= elements[index + number] != before[index + number]
        replaced &= _unlike(lanes, each, part)
        if replaced.any():
            self._doubt(lanes, part, each, int(np.flatnonzero(replaced)[0]), "writes")

    def _doubt(self, lanes: Lanes, part: Part, each: Listed, position: int, verb: str) -> None:
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

    def _unwritten(self, lanes: Lanes, part: Part, poison: Poison) -> None:
        """Note a load of elements that still hold the poison of fresh memory."""
        if part.width * part.count < poison.width or self._findings.seen(UNINITIALISED, part.instruction):
            return
        each = part.listed(lanes)
        elements, start = part.allocation.elements(poison.width)
        first = (each.addresses - start) // poison.width
        many = part.width * part.count // poison.width
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


def _cta_of(lanes: Lanes, each: Listed) -> Array:
    lane = np.arange(lanes.lane_count) if each.lanes is None else each.lanes
    return lanes.cta_numbers[lane // lanes.threads].astype(np.int32)


def _sectors(lanes: Lanes, part: Part) -> tuple[Array | slice, Array]:
    """Sectors of a request and the CTA of each; a slice where CTAs lie one after the other."""
    request, allocation = part.request, part.allocation
    first = allocation.address // SECTOR_BYTES
    if isinstance(request, Listed):
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


def _unlike(lanes: Lanes, each: Listed, part: Part) -> Array:
    """Which threads' values are not what memory holds."""
    elements, start = part.allocation.elements(part.width)
    index = (each.addresses - start) // part.width
    unlike = np.zeros(len(index), np.bool_)
    for number, one in enumerate(part.data):
        flat = np.broadcast_to(one, (lanes.ctas, lanes.threads)).reshape(-1)
        stored = flat if each.lanes is None else flat[each.lanes]
        unlike |= elements[index + number] != stored.view(UNSIGNED[part.width])
    return unlike
