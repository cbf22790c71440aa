"""Global memory watched: reads of what nobody wrote, and CTAs whose order decides a result.

Memory that a program allocated without a value holds a bit pattern that no arithmetic makes (``Poison``); an
element that still holds it when a kernel loads it was written by nobody, neither a kernel nor PyTorch, whoever
may write there.  The rule needs no list of the operations that write, and accuses nobody falsely.

CTAs of a grid run in no order.  Where a kernel has no means to order them (no atomic, fence, or access with an
order), two CTAs that store different values to one place, or one that loads what another stored, are a doubt,
noted by 32-byte sectors, which running the CTAs one by one in both directions settles (``rerun``).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cutegen_nb.core.profile import SECTOR_BYTES
from cutegen_nb.simulator.addressing import Listed, Split, listed_of
from cutegen_nb.simulator.faults import place
from cutegen_nb.simulator.findings import CTA_ORDER, UNINITIALISED, Findings
from cutegen_nb.simulator.lanes import Lanes
from cutegen_nb.simulator.memory import UNSIGNED, Allocation
from cutegen_nb.simulator.ptx_model import Instruction, Register
from cutegen_nb.simulator.shared_watch import STRONG
from cutegen_nb.simulator.values import Array, Value

_ORDERING = frozenset({"atom", "red", "fence", "membar"})
_CLOCKS = ("%clock", "%globaltimer")


def orders_ctas(instructions: Iterable[Instruction]) -> bool:
    """Whether a kernel has anything by which CTAs may wait for one another, or reads a clock, which runs on."""
    return any(
        item.opcode in _ORDERING
        or not STRONG.isdisjoint(item.modifiers)
        or any(isinstance(one, Register) and one.name.startswith(_CLOCKS) for one in item.operands)
        for item in instructions
    )


class GlobalWatch:
    """Which CTA stored to each sector in this launch; looked at only for kernels that cannot order CTAs."""

    def __init__(self, findings: Findings, *, several: bool) -> None:
        self._findings = findings
        self._several = several
        """Whether CTAs may run in another order: there are several, and nothing orders them."""
        self._owners: dict[int, Array] = {}

    def storing(
        self, lanes: Lanes, request: Split | Listed, allocation: Allocation, size: int, instruction: Instruction,
        data: list[Value],
    ) -> bool:  # fmt: skip
        """Look at a store before it is carried out; says whether to look again afterwards."""
        if not self._several:
            return False
        owner = self._owner(allocation)
        sectors, numbers = _sectors(lanes, request, allocation)
        if isinstance(sectors, slice):
            part = owner[sectors].reshape(len(numbers), -1)
            before, part[...] = int(part.max()), numbers[:, None]
            if before < 0:
                return False
            return self._stored_over(lanes, request, allocation, size, instruction, data)
        before_each = owner[sectors]
        contested = ((before_each >= 0) & (before_each != numbers)).any()
        owner[sectors] = numbers
        if contested:
            self._stored_over(lanes, request, allocation, size, instruction, data)
        shared_column = isinstance(request, Split) and len(request.column) == 1 and lanes.ctas > 1
        return bool(shared_column or (owner[sectors] != numbers).any()) and not self._findings.seen(
            CTA_ORDER, instruction
        )

    def stored(
        self, lanes: Lanes, request: Split | Listed, allocation: Allocation, width: int, instruction: Instruction,
        data: list[Value],
    ) -> None:  # fmt: skip
        """Look at a store after it was carried out: a value that is not there was overwritten at once."""
        each = request if isinstance(request, Listed) else listed_of(lanes, request)
        lost = _unlike(lanes, each, allocation.elements(width), width, data)
        if lost.any():
            self._doubt(lanes, each, int(np.flatnonzero(lost)[0]), allocation, instruction, "writes")

    def loading(
        self, lanes: Lanes, request: Split | Listed, allocation: Allocation, instruction: Instruction
    ) -> None:
        """Look at a load: does anything wait there that nobody wrote, or that another CTA did?"""
        owner = self._owners.get(allocation.address)
        if owner is None or self._findings.seen(CTA_ORDER, instruction):
            return
        each = request if isinstance(request, Listed) else listed_of(lanes, request)
        numbers = _cta_of(lanes, each)
        before = owner[each.addresses // SECTOR_BYTES - allocation.address // SECTOR_BYTES]
        other = (before >= 0) & (before != numbers)
        if other.any():
            self._doubt(lanes, each, int(np.flatnonzero(other)[0]), allocation, instruction, "reads")

    def _owner(self, allocation: Allocation) -> Array:
        owner = self._owners.get(allocation.address)
        if owner is None:
            first = allocation.address // SECTOR_BYTES
            owner = np.full((allocation.end - 1) // SECTOR_BYTES - first + 1, -1, np.int32)
            self._owners[allocation.address] = owner
        return owner

    def _stored_over(
        self, lanes: Lanes, request: Split | Listed, allocation: Allocation, size: int, instruction: Instruction,
        data: list[Value],
    ) -> bool:  # fmt: skip
        """A sector that another CTA stored to is stored to: are values of this launch replaced?"""
        if self._findings.seen(CTA_ORDER, instruction) or allocation.before is None:
            return False
        each = request if isinstance(request, Listed) else listed_of(lanes, request)
        width = size // len(data)
        elements, start = allocation.elements(width)
        skip = start - allocation.address
        before = allocation.before[skip : skip + elements.nbytes].view(elements.dtype)
        index = (each.addresses - start) // width
        replaced = np.zeros(len(index), np.bool_)
        for number in range(len(data)):
            replaced |= elements[index + number] != before[index + number]
        replaced &= _unlike(lanes, each, (elements, start), width, data)
        if replaced.any():
            self._doubt(lanes, each, int(np.flatnonzero(replaced)[0]), allocation, instruction, "writes")
        return False

    def _doubt(  # noqa: PLR0913, PLR0917 - what a message needs
        self, lanes: Lanes, each: Listed, position: int, allocation: Allocation, instruction: Instruction, verb: str
    ) -> None:
        thread, cta = lanes.place_of(each.lane(position))
        offset = int(each.addresses[position]) - allocation.address
        how = "over another value that" if verb == "writes" else "what"
        self._findings.add(
            CTA_ORDER,
            f"Thread {thread} of CTA {cta} {verb} byte {offset} of tensor {allocation.label!r} {how} a thread "
            f"elsewhere in the grid wrote in the same launch ({place(instruction)}), and nothing orders the two.",
            instruction, thread=thread, cta=cta, doubt=True,
        )  # fmt: skip


def unwritten(  # noqa: PLR0913, PLR0917 - a request has this many parts
    lanes: Lanes, request: Split | Listed, allocation: Allocation, width: int, index: int,
    instruction: Instruction,
) -> None:  # fmt: skip
    """Note a load of elements that still hold the poison of fresh memory."""
    poison = allocation.poison
    if poison is None or width < poison.width or lanes.findings.seen(UNINITIALISED, instruction):
        return
    each = request if isinstance(request, Listed) else listed_of(lanes, request)
    elements, start = allocation.elements(poison.width)
    many = width // poison.width
    first = (each.addresses + index * width - start) // poison.width
    hit = np.zeros(len(first), np.bool_)
    for part in range(many):
        hit |= elements[first + part] == poison.bits
    if not hit.any():
        return
    position = int(np.flatnonzero(hit)[0])
    thread, cta = lanes.place_of(each.lane(position))
    at = int(each.addresses[position]) + index * width - allocation.address
    lanes.findings.add(
        UNINITIALISED,
        f"Thread {thread} of CTA {cta} reads element {at // poison.width} of tensor {allocation.label!r}, which "
        f"was allocated without a value and never written ({place(instruction)}).",
        instruction, thread=thread, cta=cta, doubt=True,
    )  # fmt: skip


def _cta_of(lanes: Lanes, each: Listed) -> Array:
    lane = np.arange(lanes.lane_count) if each.lanes is None else each.lanes
    return lanes.cta_numbers[lane // lanes.threads].astype(np.int32)


def _sectors(lanes: Lanes, request: Split | Listed, allocation: Allocation) -> tuple[Array | slice, Array]:
    """Sectors of a request in its allocation and the CTA of each; a slice where CTAs lie one after the other."""
    first = allocation.address // SECTOR_BYTES
    if isinstance(request, Listed):
        return request.addresses // SECTOR_BYTES - first, _cta_of(lanes, request)
    numbers = lanes.cta_numbers.astype(np.int32)
    if len(request.column) == 1:
        numbers = numbers[-1:]
    low, high = int(request.row.min()), int(request.row.max())
    column = request.column
    span = high - low
    # Rows that begin on a sector and are as far apart as they are wide fill what lies between.
    if len(column) > 1:
        step = int(column[1] - column[0])
        tight = step > 0 and span < step <= 2 * (span + SECTOR_BYTES)
        if tight and not step % SECTOR_BYTES and not (int(column[0]) + low) % SECTOR_BYTES:
            if (np.diff(column) == step).all():
                start = (int(column[0]) + low) // SECTOR_BYTES - first
                each = step // SECTOR_BYTES
                end = start + each * len(column)
                size = (allocation.end - 1) // SECTOR_BYTES - first + 1
                if end <= size:
                    return slice(start, end), numbers
    sectors = (column[:, None] + request.row[None]) // SECTOR_BYTES - first
    return sectors.ravel(), np.repeat(numbers, len(request.row))


def _unlike(
    lanes: Lanes, each: Listed, memory: tuple[Array, int], width: int, data: list[Value]
) -> Array:
    """Which threads' values are not what memory holds."""
    elements, start = memory
    index = (each.addresses - start) // width
    unlike = np.zeros(len(index), np.bool_)
    for number, one in enumerate(data):
        flat = np.broadcast_to(one, (lanes.ctas, lanes.threads)).reshape(-1)
        stored = flat if each.lanes is None else flat[each.lanes]
        unlike |= elements[index + number] != stored.view(UNSIGNED[width])
    return unlike
