"""``tcgen05.ld``, ``st`` and ``wait``: tensor memory to registers and back.

Values are moved at once. A register read before ``wait::ld`` is not noticed; PTX orders that by the
register itself. A product over columns whose stores no ``wait::st`` covered is a finding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.checkers.findings import ASYNC_HAZARD
from cutegen_nb.simulator.numbers.values import DTYPES, U32, Array
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation, items
from cutegen_nb.simulator.ops.tensor.places import (
    TensorAddress,
    active_warps,
    column_of,
    lane_of,
    memory_of,
    require_allocated,
    require_lanes,
    tensor_address,
)
from cutegen_nb.simulator.ops.warp.fragments import require_whole_warps
from cutegen_nb.simulator.ptx.faults import place, unsupported
from cutegen_nb.simulator.ptx.model import Immediate, Instruction, Operand
from cutegen_nb.simulator.state.batch import WARP, Batch, Mask
from cutegen_nb.simulator.state.tensor_memory import HALF

_SHAPES = {"32x32b": 1, "16x32bx2": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4}
"""Shape → registers of a thread at ``.x1`` (PTX ISA, ``tcgen05.ld``, table of ``.num`` and ``.shape``)."""
_SPLIT = "16x32bx2"
"""Shape whose two halves begin at columns of their own."""
_MOST_REGISTERS = 128
_REPEAT = re.compile(r"x(\d+)")
_CELL_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fragment:
    """Cells that a warp moves: their lanes and columns, (32 threads, registers)."""

    lanes: Array
    columns: Array
    height: int
    """Lanes in all, 16 or 32."""

    @property
    def width(self) -> int:
        """Columns from the first to the last."""
        return int(self.columns.max()) + 1


def _fragment(shape: str, registers: int, split: int) -> _Fragment:
    """Cells of a shape, from the address on (PTX ISA, "Data Movement Shape"; CUTLASS, ``copy_traits``)."""
    thread, register = np.arange(WARP)[:, None], np.arange(registers)[None]
    if shape == "32x32b":
        lanes, columns = thread, register
    elif shape == _SPLIT:
        lanes, columns = thread % HALF, thread // HALF * split + register
    elif shape == "16x64b":
        lanes, columns = thread // 4 + thread % 2 * 8, thread // 2 % 2 + register * 2
    elif shape == "16x128b":
        lanes, columns = thread // 4 + register % 2 * 8, thread % 4 + register // 2 * 4
    else:  # 16x256b
        lanes = thread // 4 + register // 2 % 2 * 8
        columns = thread % 4 * 2 + register % 2 + register // 4 * 8
    both = np.broadcast_arrays(lanes, columns)
    return _Fragment(lanes=both[0], columns=both[1], height=WARP if shape == "32x32b" else HALF)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """Parts of a ``tcgen05.ld`` or ``st``."""

    instruction: Instruction
    at: TensorAddress
    fragment: _Fragment
    packed: bool
    """True if a register holds the lower halves of two neighbouring columns."""

    def cells(self, lanes: Batch, mask: Mask | None, verb: str) -> tuple[Array, tuple[Array, Array, Array]]:
        """Active warps, and the index of their cells: (warps, 32, registers), twice as many if packed.

        Raises:
            TensorMemoryMisuse: a warp names lanes of another.
            OutOfBounds: columns that are not allocated.
        """
        require_whole_warps(lanes, mask, self.instruction)
        warps, threads = active_warps(lanes, mask)
        addresses = self.at.of(lanes, threads)
        fragment = self.fragment
        require_lanes(lanes, self.instruction, warps, threads, addresses, fragment.height)
        ctas, first = threads // lanes.threads, column_of(addresses)
        width = fragment.width * (2 if self.packed else 1)
        require_allocated(lanes, self.instruction, threads, ctas, first, width, verb)
        rows, columns = fragment.lanes, fragment.columns
        if self.packed:
            rows = np.repeat(rows, 2, axis=1)
            columns = np.stack((2 * columns, 2 * columns + 1), axis=-1).reshape(rows.shape)
        place_ = (
            ctas[:, None, None], first[:, None, None] + columns, lane_of(addresses)[:, None, None] + rows,
        )  # fmt: skip
        self._check_under_way(lanes, threads, place_, verb)
        return warps, place_

    def _check_under_way(
        self, lanes: Batch, threads: Array, index: tuple[Array, Array, Array], verb: str
    ) -> None:
        if not lanes.tensor_work or lanes.findings.seen(ASYNC_HAZARD, self.instruction):
            return
        ctas, columns, rows = index
        hit = (memory_of(lanes).under_way[ctas, columns, rows // HALF] > 0).any(axis=(1, 2))
        if hit.any():
            at = int(np.flatnonzero(hit)[0])
            thread, cta = lanes.place_of(int(threads[at]))
            lanes.findings.add(
                ASYNC_HAZARD,
                f"Thread {thread} of CTA {cta} {verb} tensor memory that a tcgen05.mma or tcgen05.cp "
                f"has still to write ({self.instruction.name}, {place(self.instruction)}). Commit it to an "
                "mbarrier (tcgen05.commit) and wait there first.",
                self.instruction, thread=thread, cta=cta,
            )  # fmt: skip


def _move(
    instruction: Instruction,
    lowering: Lowering,
    modifiers: Modifiers,
    address: Operand,
    offset: Operand | None,
) -> _Move:
    """Parts of a move; ``offset`` is where the second half of ``.16x32bx2`` begins.

    Raises:
        UnsupportedOpcode: a shape, a number of repeats or a modifier that is not known.
    """
    shape = modifiers.one(*_SHAPES)
    repeat = next((one for one in instruction.modifiers if _REPEAT.fullmatch(one)), "")
    modifiers.one(repeat)
    packed = modifiers.flag("pack::16b") or modifiers.flag("unpack::16b")
    modifiers.one("b32", "f32", "u32", "s32")
    modifiers.done()
    if not shape or not repeat or (shape == _SPLIT) != isinstance(offset, Immediate):
        raise unsupported(instruction)
    registers = _SHAPES[shape] * int(repeat[1:])
    if registers > _MOST_REGISTERS:
        raise unsupported(instruction, f"{registers} registers")
    split = int(offset.value) if isinstance(offset, Immediate) else 0
    return _Move(
        instruction=instruction, at=tensor_address(instruction, lowering, address),
        fragment=_fragment(shape, registers, split), packed=packed,
    )  # fmt: skip


def lower_load(instruction: Instruction, lowering: Lowering, modifiers: Modifiers) -> Operation:
    """Operation of ``tcgen05.ld`` and ``ld.red``."""
    reduces = modifiers.flag("red")
    reduce = _reduction(instruction, modifiers) if reduces else None
    target, *rest = instruction.operands
    best = rest.pop(0) if reduces else None
    move = _move(instruction, lowering, modifiers, rest[0], rest[1] if len(rest) > 1 else None)
    registers = items(target)
    if len(registers) != move.fragment.lanes.shape[1]:
        raise unsupported(instruction, "number of registers")
    puts = [lowering.writer(instruction, one) for one in registers]
    put_best = lowering.writer(instruction, best) if best is not None else None
    lowering.tally.tensor_bytes_each = len(puts) * _CELL_BYTES

    def run(lanes: Batch, mask: Mask | None) -> None:
        warps, index = move.cells(lanes, mask, "reads")
        words = memory_of(lanes).cells[index]
        if move.packed:  # the column on the left in the lower half
            words = words[..., 0::2] & U32.type(0xFFFF) | words[..., 1::2] << U32.type(16)
        each = np.ascontiguousarray(np.moveaxis(words, -1, 0))
        for put, value in zip(puts, each, strict=True):
            put(lanes, mask, _spread(lanes, warps, value))
        if reduce is not None and put_best is not None:
            put_best(lanes, mask, _spread(lanes, warps, reduce(each)))

    return run


def _reduction(instruction: Instruction, modifiers: Modifiers) -> Callable[[Array], Array]:
    """Function from the loaded registers, (registers, …), to the least or the greatest of them."""
    kind = next((one for one in ("f32", "u32", "s32") if one in instruction.modifiers), "")
    operation = modifiers.one("min", "max")
    absolute, keeps_nan = modifiers.flag("abs"), modifiers.flag("NaN")
    if not kind or not operation:
        raise unsupported(instruction)
    exact = {"min": np.minimum, "max": np.maximum}[operation]
    ufunc = exact if keeps_nan or kind != "f32" else {"min": np.fmin, "max": np.fmax}[operation]
    dtype = DTYPES[kind]

    def reduce(words: Array) -> Array:
        values = words.view(dtype)
        best: Array = ufunc.reduce(np.abs(values) if absolute else values, axis=0)
        return best.view(U32)

    return reduce


def _spread(lanes: Batch, warps: Array, value: Array) -> Array:
    """Values of some warps, (warps, 32), as those of all threads, (ctas, threads)."""
    if len(warps) == lanes.warps:
        return value.reshape(lanes.ctas, lanes.threads)
    spread = np.zeros((lanes.warps, WARP), U32)
    spread[warps] = value
    return spread.reshape(lanes.ctas, lanes.threads)


def lower_store(instruction: Instruction, lowering: Lowering, modifiers: Modifiers) -> Operation:
    """Operation of ``tcgen05.st``."""
    address, *offset, origin = instruction.operands
    move = _move(instruction, lowering, modifiers, address, offset[0] if offset else None)
    registers = items(origin)
    if len(registers) != move.fragment.lanes.shape[1]:
        raise unsupported(instruction, "number of registers")
    slots = [lowering.source(instruction, one, "b32") for one in registers]
    lowering.tally.tensor_bytes_each = len(slots) * _CELL_BYTES

    def run(lanes: Batch, mask: Mask | None) -> None:
        warps, index = move.cells(lanes, mask, "overwrites")
        words = np.empty((len(warps), WARP, len(slots)), U32)
        for number, slot in enumerate(slots):
            words[..., number] = lanes.full(lanes.registers[slot], U32).reshape(-1, WARP)[warps]
        if move.packed:
            pairs = np.stack((words & U32.type(0xFFFF), words >> U32.type(16)), axis=-1)
            words = pairs.reshape(*words.shape[:2], -1)
        memory = memory_of(lanes)
        memory.cells[index] = words
        bits = U32.type(1) << (warps % lanes.warps_per_cta).astype(U32)
        ctas, columns, _ = index
        np.bitwise_or.at(memory.unwaited, (ctas[:, 0], columns[:, 0]), bits[:, None])

    return run


def lower_wait(instruction: Instruction, modifiers: Modifiers, what: str) -> Operation:
    """Operation of ``tcgen05.wait::ld`` and ``wait::st``."""
    modifiers.done()

    def run(lanes: Batch, mask: Mask | None) -> None:
        require_whole_warps(lanes, mask, instruction)
        if what == "wait::ld" or lanes.tensor is None:
            return
        warps, _ = active_warps(lanes, mask)
        ctas, within = np.divmod(warps, lanes.warps_per_cta)
        done = np.zeros(lanes.ctas, U32)
        np.bitwise_or.at(done, ctas, U32.type(1) << within.astype(U32))
        lanes.tensor.unwaited &= ~done[:, None]

    return run
