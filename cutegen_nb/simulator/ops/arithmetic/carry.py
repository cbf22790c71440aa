"""Sums with carry in and carry out (PTX ISA, "Extended-Precision Integer Arithmetic Instructions").

The condition-code register ``CC.CF`` has a slot of its own. It holds 0 or 1, a borrow after ``sub.cc``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_nb.simulator.numbers.values import U32, Value
from cutegen_nb.simulator.ops.lowering import Compute, Lowering, Operation
from cutegen_nb.simulator.ptx.model import TYPE_BYTES, Instruction
from cutegen_nb.simulator.state.batch import Batch, Mask


def carry_add(
    instruction: Instruction, lowering: Lowering, slots: tuple[int, int], kind: str, *, carry_out: bool
) -> Operation:
    """Operation of ``add.cc``, ``addc``, ``sub.cc`` and ``subc`` of 32 or 64 bits."""
    unsigned = np.dtype(f"u{TYPE_BYTES[kind]}")
    uses = instruction.opcode in {"addc", "subc"}
    subtracting = instruction.opcode.startswith("sub")
    put, carry = lowering.writer(instruction, instruction.operands[0]), lowering.carry

    def run(lanes: Batch, mask: Mask | None) -> None:
        registers = lanes.registers
        x, y = (registers[slot].view(unsigned) for slot in slots)
        flag = registers[carry].view(U32).astype(unsigned) if uses else unsigned.type(0)
        if subtracting:
            total = x - y - flag
            # Borrow: x < y + flag, written without the sum, which may wrap around.
            out = (x < y) | ((x == y) & (flag != 0))
        else:
            total, out = _sum(x, y, flag)
        if carry_out:
            _set_carry(lanes, mask, carry, out)
        put(lanes, mask, total)

    return run


def carry_mad(
    instruction: Instruction, lowering: Lowering, given: tuple[Compute, int], unsigned: np.dtype[Any], *,
    carry_out: bool,
) -> Operation:  # fmt: skip
    """Operation of ``mad.cc`` and ``madc``: one part of a product, plus an addend, plus the carry."""
    multiplied, addend = given
    uses = instruction.opcode == "madc"
    put, carry = lowering.writer(instruction, instruction.operands[0]), lowering.carry

    def run(lanes: Batch, mask: Mask | None) -> None:
        registers = lanes.registers
        flag = registers[carry].view(U32).astype(unsigned) if uses else unsigned.type(0)
        total, out = _sum(multiplied(registers).view(unsigned), registers[addend].view(unsigned), flag)
        if carry_out:
            _set_carry(lanes, mask, carry, out)
        put(lanes, mask, total)

    return run


def _sum(x: Value, y: Value, flag: Value) -> tuple[Value, Value]:
    """``x + y + flag`` modulo 2**bits, and the carry out."""
    total = x + y + flag
    # The sum wrapped around if it is less than x, or equal to x because y + flag is exactly 2**bits.
    return total, (total < x) | ((total == x) & (flag != 0))


def _set_carry(lanes: Batch, mask: Mask | None, slot: int, flag: Value) -> None:
    """Write the condition code of the active lanes."""
    bits = flag.astype(U32)
    lanes.registers[slot] = bits if mask is None else mask.select(bits, lanes.registers[slot], U32.itemsize)
