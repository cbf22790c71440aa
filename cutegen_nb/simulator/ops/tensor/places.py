"""Addresses in tensor memory: the warps that give them, and the checks of what they name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.simulator.numbers.values import S64, U32, Array
from cutegen_nb.simulator.ops.lowering import Lowering
from cutegen_nb.simulator.ops.memory.load_store import address_of
from cutegen_nb.simulator.ptx.faults import OutOfBounds, SimulatorFault, place, unsupported
from cutegen_nb.simulator.ptx.model import Address, Instruction, Operand
from cutegen_nb.simulator.state.batch import WARP, Batch, Mask
from cutegen_nb.simulator.state.tensor_memory import COLUMNS, LANES, TensorMemory, column_of, lane_of


class TensorMemoryMisuse(SimulatorFault):
    """Use of tensor memory against its rules: allocation, lanes of another warp, a wrong address."""

    kind = "tensor-memory-misuse"
    verdict = Verdict.CRASHED


def misuse(lanes: Batch, lane: int, instruction: Instruction, text: str) -> TensorMemoryMisuse:
    """Fault of a thread; ``text`` is the event and the advice, separated by ``|``."""
    thread, cta = lanes.place_of(lane)
    what, _, advice = text.partition("|")
    message = f"Thread {thread} of CTA {cta} {what} ({instruction.name}, {place(instruction)}). {advice}"
    return TensorMemoryMisuse(message, instruction, thread=thread, cta=cta)


def ctas_of(lanes: Batch, threads: Array, *, pair: bool) -> list[Array]:
    """CTA of each issuing thread; for two CTAs both of its pair, the even rank first."""
    own = threads // lanes.threads
    return [own & ~1, own | 1] if pair else [own]


def memory_of(lanes: Batch) -> TensorMemory:
    """Tensor memory of the batch, made at the first call."""
    if lanes.tensor is None:
        lanes.tensor = TensorMemory(lanes.ctas, lanes.filling)
    return lanes.tensor


@dataclass(frozen=True, slots=True)
class TensorAddress:
    """Address operand in tensor memory, ``[register + offset]``."""

    slot: int
    """Slot of the register with the address."""
    offset: int
    """Columns added to the address."""

    def of(self, lanes: Batch, threads: Array) -> Array:
        """Return the address of each thread, int64; `threads` are indices into the flattened batch."""
        whole = lanes.full(lanes.registers[self.slot], U32).reshape(-1)
        return whole[threads].astype(S64) + self.offset


def tensor_address(instruction: Instruction, lowering: Lowering, operand: Operand) -> TensorAddress:
    """Address operand in tensor memory.

    Raises:
        UnsupportedOpcode: the operand is no address.
    """
    if isinstance(operand, Address):
        slot, offset, space = address_of(instruction, lowering, operand)
        if space:
            raise unsupported(instruction, "address of a variable")
        return TensorAddress(slot, offset)
    return TensorAddress(lowering.source(instruction, operand, "u32"), 0)


def active_warps(lanes: Batch, mask: Mask | None) -> tuple[Array, Array]:
    """Active warps as numbers in the batch, and the first thread of each in the flattened batch."""
    each = np.broadcast_to(lanes.warps_of(mask), (lanes.ctas, lanes.warps_per_cta))
    warps = np.flatnonzero(each)
    ctas, within = np.divmod(warps, lanes.warps_per_cta)
    return warps, ctas * lanes.threads + within * WARP


def require_allocated(  # noqa: PLR0913, PLR0917 - a region has this many sides
    lanes: Batch, instruction: Instruction, threads: Array, ctas: Array, first: Array, columns: int, verb: str
) -> None:
    """Check that columns are allocated, from ``first`` on in each CTA.

    Raises:
        OutOfBounds: one is not, or lies beyond the last.
    """
    memory = memory_of(lanes)
    places = first[:, None] + np.arange(columns)
    outside = ((places < 0) | (places >= COLUMNS)).any(axis=1)
    outside |= (~memory.allocated[ctas[:, None], places % COLUMNS]).any(axis=1)
    if not outside.any():
        return
    at = int(np.flatnonzero(outside)[0])
    thread, cta = lanes.place_of(int(threads[at]))
    last = int(first[at]) + columns - 1
    raise OutOfBounds(
        f"Thread {thread} of CTA {cta} {verb} columns {int(first[at])} to {last} of tensor memory, which are "
        f"not all allocated ({instruction.name}, {place(instruction)}). Allocate as many columns as the tile "
        "needs, and free them after the last use.",
        instruction, thread=thread, cta=cta,
    )  # fmt: skip


def require_lanes(  # noqa: PLR0913, PLR0917 - a request has this many parts
    lanes: Batch, instruction: Instruction, warps: Array, threads: Array, addresses: Array, height: int
) -> None:
    """Check that warps access lanes of their own quarter (PTX ISA, "Access restrictions").

    ``height`` is the number of lanes that the instruction accesses, 16 or 32.

    Raises:
        TensorMemoryMisuse: a warp names lanes of another.
    """
    first = lane_of(addresses)
    own = warps % lanes.warps_per_cta % (LANES // WARP)
    wrong = (first // WARP != own) | (first % WARP % height != 0) | (first >= LANES)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        mine = int(own[at]) * WARP
        raise misuse(
            lanes, int(threads[at]), instruction,
            f"accesses tensor memory from lane {int(first[at])} on; its warp, {int(own[at])} of its warp "
            f"group, may access lanes {mine} to {mine + WARP - 1}|"
            "Let each of the four warps of a warp group copy the lanes of its own quarter.",
        )  # fmt: skip


__all__ = [
    "TensorAddress", "TensorMemoryMisuse", "active_warps", "column_of", "lane_of", "memory_of", "misuse",
    "require_allocated", "require_lanes", "tensor_address",
]  # fmt: skip
