"""Addresses of one memory request: separable by CTA and thread, or listed; and their faults.

A request is what one instruction asks of memory, for all active threads of a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np

from cutegen_nb.simulator.numbers.values import S64, Array, Separable, Value, any_bits
from cutegen_nb.simulator.ptx.faults import Misaligned, OutOfBounds, SimulatorFault, place
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.batch import Batch, Mask

_NOTHING: Array = np.zeros(1, np.int64)
"""Zero offset: the column of addresses that do not vary by CTA, or the row of those that do not by thread."""
_RANK = 2
"""Dimensions of a register that differs between threads: (ctas, threads)."""


class AddressOperand(NamedTuple):
    """Address operand of a request, ``[register + offset]``."""

    value: Value
    """Value of the register with the base addresses."""
    offset: int
    """Bytes added to the base address."""


@dataclass(frozen=True, slots=True)
class SeparableAddresses:
    """Separable addresses: thread t of CTA c has ``column[c] + row[t]``; a length of 1 stands for all."""

    column: Array
    """Base address of each CTA, int64 of shape (ctas,) or (1,)."""
    row: Array
    """Byte offset of each active thread, int64 of shape (active threads,) or (1,)."""
    active: Array | None
    """Indices of the active threads, the same in every CTA, in the order of ``row``; None for all."""

    def low(self) -> int:
        """Least address."""
        return int(self.column.min()) + int(self.row.min())

    def high(self) -> int:
        """Greatest address."""
        return int(self.column.max()) + int(self.row.max())

    def all_aligned(self, size: int) -> bool:
        """Return whether every address is a multiple of ``size``, a power of two."""
        # No low bit anywhere suffices. Low bits of column and row may still cancel, so the sums decide.
        if not (any_bits(self.column) | any_bits(self.row)) & (size - 1):
            return True
        return not ((self.column[:, None] + self.row[None]) & (size - 1)).any()


@dataclass(frozen=True, slots=True)
class ListedAddresses:
    """Addresses listed one by one, one for each active thread of the batch."""

    addresses: Array
    """Byte addresses, one-dimensional int64, in lane order."""
    lanes: Array | None
    """Index of each address's thread into the flattened batch (ctas × threads); None for all threads."""

    def some(self, positions: Array | None) -> ListedAddresses:
        """Addresses at the given positions; all of them for None."""
        if positions is None:
            return self
        return ListedAddresses(
            self.addresses[positions], positions if self.lanes is None else self.lanes[positions]
        )

    def lane(self, position: int) -> int:
        """Index into the flattened batch of the thread whose address is at ``position``."""
        return position if self.lanes is None else int(self.lanes[position])


def split(mask: Mask | None, at: AddressOperand) -> SeparableAddresses | None:
    """Return a request as column and row; None where its addresses or its mask are not separable."""
    if mask is not None and mask.array.shape[0] != 1:
        return None
    value, offset = at
    if value.__class__ is Separable:
        column, row = wide(value.column).ravel(), wide(value.row).ravel()
    else:
        plain = wide(value)
        if plain.ndim < _RANK:
            column, row = np.full(1, int(plain), np.int64), _NOTHING
        elif plain.shape[1] == 1:
            column, row = plain[:, 0], _NOTHING
        elif plain.shape[0] == 1:
            column, row = _NOTHING, plain[0]
        else:
            return None
    if offset:
        column = column + offset
    if mask is None:
        return SeparableAddresses(column, row, None)
    active = np.flatnonzero(mask.array[0])
    return SeparableAddresses(column, row if len(row) == 1 else row[active], active)


def listed(lanes: Batch, mask: Mask | None, at: AddressOperand) -> ListedAddresses:
    """Return a request address by address."""
    value, offset = at
    if mask is not None and value.__class__ is Separable:
        cta, thread = np.divmod(mask.index, lanes.threads)
        addresses = wide(value.column).ravel()[cta] + wide(value.row).ravel()[thread]
        return ListedAddresses(addresses + offset, mask.index)
    plain = wide(value.view(value.unsigned) if value.__class__ is Separable else value)
    flat = np.broadcast_to(plain, (lanes.ctas, lanes.threads)).reshape(-1)
    if mask is not None:
        flat = flat[mask.index]
    return ListedAddresses(flat + offset if offset else flat, None if mask is None else mask.index)


def wide(value: Value) -> Value:
    """Convert addresses to int64, reading their bits as signed.

    Shared memory has 32-bit addresses, and compilers fold ``[-4 * t + 124]`` into a register that holds a
    negative number and an offset. No memory window is so large that a valid address would be negative.
    """
    if value.dtype.itemsize == S64.itemsize:
        return value.view(S64)
    return value.view(np.dtype(f"i{value.dtype.itemsize}")).astype(S64)


def listed_of(lanes: Batch, request: SeparableAddresses) -> ListedAddresses:
    """Return a separable request address by address, for messages and checks that need every address."""
    count = lanes.threads if request.active is None else len(request.active)
    addresses = np.broadcast_to(request.column[:, None] + request.row[None], (lanes.ctas, count)).reshape(-1)
    if request.active is None:
        return ListedAddresses(addresses, None)
    index = np.arange(lanes.ctas)[:, None] * lanes.threads + request.active[None]
    return ListedAddresses(addresses, index.ravel())


def raise_misaligned(
    lanes: Batch, request: ListedAddresses, size: int, instruction: Instruction, where: str
) -> NoReturn:
    """Raise :class:`Misaligned` for the first thread whose address is no multiple of ``size`` bytes."""
    position = int(np.flatnonzero(request.addresses & (size - 1))[0])
    address = int(request.addresses[position])
    what = f"misaligned {size}-byte access {where}, address {address:#x}, which is no multiple of {size}"
    advice = f"Align it to {size} bytes or use narrower accesses."
    raise _fault(Misaligned, lanes, request.lane(position), instruction, f"{what}|{advice}")


def raise_outside(lanes: Batch, lane: int, instruction: Instruction, what: str) -> NoReturn:
    """Raise :class:`OutOfBounds` for the thread at index ``lane`` of the flattened batch."""
    advice = "Guard the access with a condition, or correct the index or the grid."
    raise _fault(OutOfBounds, lanes, lane, instruction, f"{what}|{advice}")


def _fault(
    kind: type[SimulatorFault], lanes: Batch, lane: int, instruction: Instruction, text: str
) -> SimulatorFault:
    """Fault of one thread, with its line; ``text`` is the event and the advice, separated by ``|``."""
    thread, cta = lanes.place_of(lane)
    what, _, advice = text.partition("|")
    message = f"Thread {thread} of CTA {cta}: {what} ({instruction.name}, {place(instruction)}). {advice}"
    return kind(message, instruction, thread=thread, cta=cta)
