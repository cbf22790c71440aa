"""Logic, shifts, bit fields, permutations (PTX ISA, "Logic and Shift Instructions", "Integer Arithmetic")."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_nb.simulator import values
from cutegen_nb.simulator.integer_ops import modular2, plain1, plain2, plain3, unsigned_of
from cutegen_nb.simulator.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.ptx_model import Instruction
from cutegen_nb.simulator.values import BOOL, DTYPES, S64, U32, U64, Value


# -- logic and shifts ----------------------------------------------------------------------------------------
@opcode("and", "or", "xor", "not", "cnot", forms="pred, b16, b32, b64")
def _logic(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    name = instruction.opcode
    unsigned = BOOL if kind == "pred" else unsigned_of(kind)
    if name in {"not", "cnot"}:
        (a,) = lowering.sources(instruction, (kind,))
        if name == "cnot":
            return lowering.assign(instruction, plain1(lambda x: (x == 0).astype(unsigned), unsigned, a))
        return lowering.assign(instruction, plain1(np.invert, unsigned, a))
    a, b = lowering.sources(instruction, (kind, kind))
    ufunc = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[name]
    if kind == "pred":
        return lowering.assign(instruction, plain2(ufunc, unsigned, a, b))
    function = values.both if name == "and" else lambda x, y: values.either(x, y, ufunc)
    return lowering.assign(instruction, modular2(function, unsigned, a, b))


@opcode("shl", "shr", forms="b16, b32, b64; shr also u and s")
def _shift(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    a, b = lowering.sources(instruction, (kind, "u32"))
    dtype, unsigned = DTYPES[kind], unsigned_of(kind)
    if instruction.opcode == "shl":
        return lowering.assign(
            instruction,
            lambda registers: values.shift_left(
                values.modular(registers[a], unsigned), registers[b].view(U32)
            ),
        )
    return lowering.assign(
        instruction,
        lambda registers: values.shift_right(
            values.modular(registers[a], unsigned), registers[b].view(U32), dtype
        ),
    )


@opcode("shf", forms="l, r with wrap, clamp; b32")
def _funnel(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    modifiers.types()
    left, clamped = modifiers.one("l", "r") == "l", modifiers.one("wrap", "clamp") == "clamp"
    modifiers.done()
    a, b, c = lowering.sources(instruction, ("b32", "b32", "u32"))
    half = np.uint64(32)

    def function(low: Value, high: Value, amount: Value) -> Value:
        joined = (high.astype(U64) << half) | low.astype(U64)
        bits = (np.minimum(amount, np.uint32(32)) if clamped else amount & np.uint32(31)).astype(U64)
        return ((joined << bits) >> half if left else joined >> bits).astype(U32)

    return lowering.assign(instruction, plain3(function, U32, a, b, c))


@opcode("lop3", forms="b32")
def _lop3(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    modifiers.types()
    modifiers.done()
    a, b, c, table_slot = lowering.sources(instruction, ("b32", "b32", "b32", "b32"))
    table = int(lowering.initial[table_slot])

    def function(x: Value, y: Value, z: Value) -> Value:
        result: Value = np.uint32(0)
        for minterm in range(8):
            if table >> minterm & 1:
                term = (x if minterm & 4 else ~x) & (y if minterm & 2 else ~y) & (z if minterm & 1 else ~z)
                result = result | term
        return result

    return lowering.assign(instruction, plain3(function, U32, a, b, c))


# -- bit fields and counts -----------------------------------------------------------------------------------
@opcode("popc", "clz", "brev", "bfind", forms="b32, b64; bfind u and s with shiftamt")
def _bits(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    from_top = modifiers.flag("shiftamt")
    modifiers.done()
    (a,) = lowering.sources(instruction, (kind,))
    dtype, unsigned = DTYPES[kind], unsigned_of(kind)
    bits = 8 * unsigned.itemsize
    name = instruction.opcode
    if name == "popc":
        return lowering.assign(instruction, plain1(lambda x: np.bitwise_count(x).astype(U32), unsigned, a))
    if name == "clz":
        return lowering.assign(instruction, plain1(lambda x: (bits - bit_length(x)).astype(U32), unsigned, a))
    if name == "brev":
        return lowering.assign(instruction, plain1(_reversed_bits, unsigned, a))

    def find(x: Value) -> Value:
        plain = np.where(x < 0, ~x, x).view(unsigned) if dtype.kind == "i" else x
        length = bit_length(plain)
        found = (bits - length if from_top else length - 1).astype(U32)
        return np.where(length == 0, np.uint32(0xFFFFFFFF), found)

    return lowering.assign(instruction, plain1(find, dtype, a))


def bit_length(x: Value) -> Value:
    """Bits up to the highest one set, as int64; 0 for 0."""
    smeared = x
    amount = 1
    while amount < 8 * x.dtype.itemsize:
        smeared = smeared | (smeared >> x.dtype.type(amount))
        amount *= 2
    return np.bitwise_count(smeared).astype(S64)


def _reversed_bits(x: Value) -> Value:
    bits = 8 * x.dtype.itemsize
    result = x
    amount = bits // 2
    ones = (1 << bits) - 1
    mask = ones
    while amount:
        mask ^= (mask << amount) & ones
        low = x.dtype.type(mask)
        shift = x.dtype.type(amount)
        result = ((result >> shift) & low) | ((result & low) << shift)
        amount //= 2
    return result


@opcode("bfe", "bfi", forms="bfe u and s, bfi b; 32, 64")
def _field(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    if instruction.opcode == "bfi":
        return _insert(instruction, lowering, kind)
    a, b, c = lowering.sources(instruction, (kind, "u32", "u32"))
    dtype, unsigned = DTYPES[kind], unsigned_of(kind)
    bits = 8 * unsigned.itemsize

    def compute(registers: list[Value]) -> Value:
        x = registers[a].view(unsigned)
        start = (registers[b].view(U32) & np.uint32(255)).astype(S64)
        length = (registers[c].view(U32) & np.uint32(255)).astype(S64)
        kept = np.minimum(length, np.maximum(bits - start, 0))
        ones = _low_ones(kept, unsigned)
        field = (
            np.where(start < bits, x >> np.minimum(start, bits - 1).astype(unsigned), unsigned.type(0)) & ones
        )
        if dtype.kind == "u":
            return field
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
        return (target & ~(ones << amount)) | ((x & ones) << amount)

    return lowering.assign(instruction, compute)


def _low_ones(count: Value, unsigned: np.dtype[Any]) -> Value:
    bits = 8 * unsigned.itemsize
    some = ~unsigned.type(0) >> np.clip(bits - count, 0, bits - 1).astype(unsigned)
    return np.where(count > 0, some, unsigned.type(0))


@opcode("prmt", forms="b32 without mode, f4e, b4e, rc8, ecl, ecr, rc16")
def _permute(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    mode = modifiers.one("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    modifiers.types()
    modifiers.done()
    a, b, c = lowering.sources(instruction, ("b32", "b32", "b32"))

    def function(x: Value, y: Value, control: Value) -> Value:
        joined = (y.astype(U64) << np.uint64(32)) | x.astype(U64)
        result: Value = np.uint32(0)
        for position in range(4):
            nibble = _selector(mode, position, control)
            byte = (joined >> ((nibble & np.uint32(7)) * np.uint32(8)).astype(U64)) & np.uint64(255)
            sign = np.where(byte >> np.uint64(7) == 1, np.uint64(255), np.uint64(0))
            chosen = np.where(nibble & np.uint32(8) != 0, sign, byte).astype(U32)
            result = result | (chosen << np.uint32(8 * position))
        return result

    return lowering.assign(instruction, plain3(function, U32, a, b, c))


def _selector(mode: str, position: int, control: Value) -> Value:
    """Which byte of the pair goes to a position (PTX ISA, ``prmt``); bit 3 asks for its sign instead."""
    if not mode:
        return (control >> np.uint32(4 * position)) & np.uint32(15)
    low = control & np.uint32(3)
    if mode == "f4e":
        return (low + np.uint32(position)) & np.uint32(7)
    if mode == "b4e":
        return (low - np.uint32(position)) & np.uint32(7)
    if mode == "rc8":
        return low
    if mode == "ecl":
        return np.maximum(low, np.uint32(position))
    if mode == "ecr":
        return np.minimum(low, np.uint32(position))
    return ((low & np.uint32(1)) << np.uint32(1)) + np.uint32(position & 1)


@opcode("sad", forms="u and s 16, 32, 64")
def _sad(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    a, b, c = lowering.sources(instruction, (kind, kind, kind))
    dtype = DTYPES[kind]
    return lowering.assign(
        instruction, plain3(lambda x, y, z: np.where(x < y, y - x, x - y) + z, dtype, a, b, c)
    )


@opcode("dp4a", "dp2a", forms="u32 and s32; dp2a lo, hi")
def _dot(instruction: Instruction, lowering: Lowering) -> Operation:
    """Dot product of four bytes, or of two 16-bit numbers and the low or high two bytes, plus an integer."""
    modifiers = Modifiers(instruction)
    first, second = modifiers.types(2)
    upper = modifiers.one("lo", "hi") == "hi"
    modifiers.done()
    a, b, c = lowering.sources(instruction, (first, second, "u32"))
    four = instruction.opcode == "dp4a"
    bits, count = (8, 4) if four else (16, 2)
    base = 2 if upper and not four else 0

    def function(x: Value, y: Value, z: Value) -> Value:
        total = z
        for index in range(count):
            left = _part(x, bits, index, first)
            total = total + left * _part(y, 8, index + base, second)
        return total

    return lowering.assign(instruction, plain3(function, U32, a, b, c))


def _part(x: Value, bits: int, index: int, kind: str) -> Value:
    """A field of a 32-bit number, extended by its sign where the type is signed, as unsigned bits."""
    high = x << np.uint32(32 - bits * (index + 1))
    if kind.startswith("s"):
        return (high.view(DTYPES["s32"]) >> np.int32(32 - bits)).view(U32)
    return high >> np.uint32(32 - bits)
