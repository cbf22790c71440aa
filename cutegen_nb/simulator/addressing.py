"""Addresses of one request, separable or one by one, and the faults they can have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np

from cutegen_nb.simulator.faults import Misaligned, OutOfBounds, SimulatorFault, place
from cutegen_nb.simulator.lanes import Lanes, Mask
from cutegen_nb.simulator.ptx_model import Instruction
from cutegen_nb.simulator.values import S64, Array, Separable, Value, any_bits

_NOTHING: Array = np.zeros(1, np.int64)
_RANK = 2


class At(NamedTuple):
    """Addresses of a request as an instruction gives them."""

    value: Value
    """Register with the base address."""
    offset: int
    """Bytes added to it."""


@dataclass(frozen=True, slots=True)
class Split:
    """Address of thread t in CTA c is ``column[c] + row[t]``; either may have length 1 for all."""

    column: Array
    """One address a CTA."""
    row: Array
    """One offset a thread."""
    active: Array | None
    """Active threads of each CTA that ``row`` belongs to; None for all."""

    def low(self) -> int:
        """Least address."""
        return int(self.column.min()) + int(self.row.min())

    def high(self) -> int:
        """Greatest address."""
        return int(self.column.max()) + int(self.row.max())

    def all_aligned(self, size: int) -> bool:
        """Whether every address is a multiple of ``size``, a power of two."""
        if not (any_bits(self.column) | any_bits(self.row)) & (size - 1):
            return True
        return not ((self.column[:, None] + self.row[None]) & (size - 1)).any()


@dataclass(frozen=True, slots=True)
class Listed:
    """One address for each active thread."""

    addresses: Array
    """int64, in lane order."""
    lanes: Array | None
    """Index of each into the flattened batch; None for all of it."""

    def some(self, positions: Array | None) -> Listed:
        """The addresses at some positions; all of them for None."""
        if positions is None:
            return self
        return Listed(self.addresses[positions], positions if self.lanes is None else self.lanes[positions])

    def lane(self, position: int) -> int:
        """Index into the flattened batch of the address at ``position``."""
        return position if self.lanes is None else int(self.lanes[position])


def split(mask: Mask | None, at: At) -> Split | None:
    """The request as column and row; None where its addresses or its mask do not separate."""
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
        return Split(column, row, None)
    active = np.flatnonzero(mask.array[0])
    return Split(column, row if len(row) == 1 else row[active], active)


def listed(lanes: Lanes, mask: Mask | None, at: At) -> Listed:
    """The request address by address."""
    value, offset = at
    if mask is not None and value.__class__ is Separable:
        cta, thread = np.divmod(mask.index, lanes.threads)
        addresses = wide(value.column).ravel()[cta] + wide(value.row).ravel()[thread]
        return Listed(addresses + offset, mask.index)
    plain = wide(value.view(value.unsigned) if value.__class__ is Separable else value)
    flat = np.broadcast_to(plain, (lanes.ctas, lanes.threads)).reshape(-1)
    if mask is not None:
        flat = flat[mask.index]
    return Listed(flat + offset if offset else flat, None if mask is None else mask.index)


def wide(value: Value) -> Value:
    """Addresses as int64, their bits taken as signed.

    Shared memory is addressed with 32 bits, and compilers fold ``[-4 * t + 124]`` into a register that holds
    a negative number and an offset; no window is so large that a valid address would be negative.
    """
    if value.dtype.itemsize == S64.itemsize:
        return value.view(S64)
    return value.view(np.dtype(f"i{value.dtype.itemsize}")).astype(S64)


def listed_of(lanes: Lanes, request: Split) -> Listed:
    """A separable request address by address, for messages and for what needs every address."""
    count = lanes.threads if request.active is None else len(request.active)
    addresses = np.broadcast_to(request.column[:, None] + request.row[None], (lanes.ctas, count)).reshape(-1)
    if request.active is None:
        return Listed(addresses, None)
    index = np.arange(lanes.ctas)[:, None] * lanes.threads + request.active[None]
    return Listed(addresses, index.ravel())


def raise_misaligned(
    lanes: Lanes, request: Listed, size: int, instruction: Instruction, where: str
) -> NoReturn:
    """Report the first thread whose address is no multiple of its width."""
    position = int(np.flatnonzero(request.addresses & (size - 1))[0])
    address = int(request.addresses[position])
    what = f"misaligned {size}-byte access {where}, address {address:#x}, which is no multiple of {size}"
    advice = f"Align it to {size} bytes or use narrower accesses."
    raise _fault(Misaligned, lanes, request.lane(position), instruction, f"{what}|{advice}")


def raise_outside(lanes: Lanes, lane: int, instruction: Instruction, what: str) -> NoReturn:
    """Report an access outside what the kernel may touch."""
    advice = "Guard the access with a predicate, or correct the index or the grid."
    raise _fault(OutOfBounds, lanes, lane, instruction, f"{what}|{advice}")


def _fault(
    kind: type[SimulatorFault], lanes: Lanes, lane: int, instruction: Instruction, text: str
) -> SimulatorFault:
    """A fault of one thread, with its line; ``text`` is what happened and the advice, parted by ``|``."""
    thread, cta = lanes.place_of(lane)
    what, _, advice = text.partition("|")
    message = f"Thread {thread} of CTA {cta}: {what} ({instruction.name}, {place(instruction)}). {advice}"
    return kind(message, instruction, thread=thread, cta=cta)
