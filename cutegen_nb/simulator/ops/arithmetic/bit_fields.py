"""Bit fields: extract, insert, mask, extend, find (PTX ISA, "Integer Arithmetic Instructions")."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_nb.simulator.numbers.values import DTYPES, S32, S64, U32, Value
from cutegen_nb.simulator.ops.arithmetic.integer import unsigned_of
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Instruction

_ONES = np.uint32(0xFFFFFFFF)
_WIDTH = 32


@opcode("bfe", "bfi", forms="bfe u and s, bfi b; 32, 64")
def _field(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    signs = "us" if instruction.opcode == "bfe" else "b"
    if kind not in {f"{sign}{bits}" for sign in signs for bits in (32, 64)}:
        raise unsupported(instruction)
    if instruction.opcode == "bfi":
        return _insert(instruction, lowering, kind)
    a, b, c = lowering.sources(instruction, (kind, "u32", "u32"))
    dtype, unsigned = DTYPES[kind], unsigned_of(kind)
    bits = 8 * unsigned.itemsize

    def compute(registers: list[Value]) -> Value:
        x = registers[a].view(unsigned)
        # Position and length are the low 8 bits of their operands (PTX ISA, ``bfe``).
        start = (registers[b].view(U32) & np.uint32(255)).astype(S64)
        length = (registers[c].view(U32) & np.uint32(255)).astype(S64)
        # Bits of the field that lie inside the operand.
        kept = np.minimum(length, np.maximum(bits - start, 0))
        ones = _low_ones(kept, unsigned)
        field = (
            np.where(start < bits, x >> np.minimum(start, bits - 1).astype(unsigned), unsigned.type(0)) & ones
        )
        if dtype.kind == "u":
            return field
        # The sign is the field's highest bit, or the operand's where the field reaches beyond it.
        top = np.minimum(start + length - 1, bits - 1)
        negative = ((x >> np.clip(top, 0, bits - 1).astype(unsigned)) & unsigned.type(1) == 1) & (length > 0)
        return np.where(negative, field | ~ones, field)

    return lowering.assign(instruction, compute)


def _insert(instruction: Instruction, lowering: Lowering, kind: str) -> Operation:
    a, b, c, d = lowering.sources(instruction, (kind, kind, "u32", "u32"))
    unsigned = unsigned_of(kind)
    bits = 8 * unsigned.itemsize

    def compute(registers: list[Value]) -> Value:
        x, target = registers[a].view(unsigned), registers[b].view(unsigned)
        start = (registers[c].view(U32) & np.uint32(255)).astype(S64)
        length = (registers[d].view(U32) & np.uint32(255)).astype(S64)
        ones = _low_ones(np.minimum(length, np.maximum(bits - start, 0)), unsigned)
        amount = np.minimum(start, bits - 1).astype(unsigned)
        # A field that begins beyond the width has no ones, so the target stays as it is.
        return (target & ~(ones << amount)) | ((x & ones) << amount)

    return lowering.assign(instruction, compute)


def _low_ones(count: Value, unsigned: np.dtype[Any]) -> Value:
    """Mask of the ``count`` lowest bits of an unsigned type."""
    bits = 8 * unsigned.itemsize
    # NumPy leaves a shift by the width undefined, so a count of 0 is chosen apart.
    some = ~unsigned.type(0) >> np.clip(bits - count, 0, bits - 1).astype(unsigned)
    return np.where(count > 0, some, unsigned.type(0))


@opcode("bmsk", "szext", forms="clamp, wrap; bmsk b32, szext u32 and s32")
def _mask_or_extend(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    mode = modifiers.one("clamp", "wrap")
    modifiers.done()
    if not mode or kind not in ({"b32"} if instruction.opcode == "bmsk" else {"u32", "s32"}):
        raise unsupported(instruction)
    a, b = lowering.sources(instruction, ("b32", "u32"))
    clamped = mode == "clamp"
    function = _bit_mask if instruction.opcode == "bmsk" else _extended

    def compute(registers: list[Value]) -> Value:
        first, second = (registers[slot].view(U32) for slot in (a, b))
        return function(first, second, clamped=clamped, signed=kind == "s32")

    return lowering.assign(instruction, compute)


def _bit_mask(position: Value, width: Value, *, clamped: bool, signed: bool) -> Value:
    """``width`` ones from a position up; both modulo 32 unless clamped (PTX ISA, ``bmsk``)."""
    del signed
    # The mask is ones << position without the ones << (position + width).
    low = position & np.uint32(31)
    end = low + (width & np.uint32(31))
    above = np.where(end >= _WIDTH, np.uint32(0), _ONES << np.minimum(end, np.uint32(31)))
    ones = _ONES << low
    if clamped:
        above = np.where(width >= _WIDTH, np.uint32(0), above)
        ones = np.where(position >= _WIDTH, np.uint32(0), ones)
    return ones & ~above


def _extended(value: Value, width: Value, *, clamped: bool, signed: bool) -> Value:
    """Low bits of a number, extended by their sign for s32, else by zeros (PTX ISA, ``szext``)."""
    count = width & np.uint32(31)
    above = _ONES << count
    if clamped:
        above = np.where(width >= _WIDTH, np.uint32(0), above)
    kept = value & ~above
    if not signed:
        return kept
    top = (value >> ((count - np.uint32(1)) & np.uint32(31))) & np.uint32(1)  # sign: highest bit of the field
    return np.where((top == 1) & (count != 0), kept | above, kept)


@opcode("fns", forms="b32")
def _find_nth(instruction: Instruction, lowering: Lowering) -> Operation:
    """Find the n-th set bit from a base, up or down; all ones if there is none (PTX ISA, ``fns``)."""
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    if kind != "b32":
        raise unsupported(instruction)
    a, b, c = lowering.sources(instruction, ("b32", "u32", "s32"))

    def compute(registers: list[Value]) -> Value:
        bits, base, offset = registers[a].view(U32), registers[b].view(U32), registers[c].view(S32)
        base, offset = base.astype(S64), offset.astype(S64)
        shape = np.broadcast_shapes(bits.shape, base.shape, offset.shape)
        found = np.full(shape, _ONES, U32)
        # Set bits to pass over; an offset of 0 only tests the bit at the base itself.
        left = np.broadcast_to(np.maximum(np.abs(offset) - 1, 0), shape)
        step = np.where(offset < 0, -1, 1)
        for distance in range(_WIDTH):
            place = base + step * distance
            here = (place >= 0) & (place < _WIDTH) & ((offset != 0) | (distance == 0))
            is_set = here & ((bits >> np.clip(place, 0, 31).astype(U32)) & np.uint32(1) == 1)
            found = np.where(is_set & (left == 0) & (found == _ONES), place.astype(U32), found)
            left = left - is_set
        return found[()]

    return lowering.assign(instruction, compute)
