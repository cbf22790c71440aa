"""Integer, logic and shift instructions (PTX ISA, "Integer Arithmetic", "Extended-Precision Arithmetic")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutegen_nb.simulator import values
from cutegen_nb.simulator.faults import unsupported
from cutegen_nb.simulator.lanes import Lanes, Mask
from cutegen_nb.simulator.lowering import Compute, Lowering, Modifiers, Operation
from cutegen_nb.simulator.ptx_model import TYPE_BYTES, Instruction
from cutegen_nb.simulator.values import DTYPES, S32, S64, U32, U64, Value

INTEGERS = frozenset({"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "b8", "b16", "b32", "b64"})
_WIDER = {"u16": U32, "s16": S32, "u32": U64, "s32": S64}


def unsigned_of(kind: str) -> np.dtype[Any]:
    """Unsigned dtype of a type's width."""
    return np.dtype(f"u{TYPE_BYTES[kind]}")


def modular2(function: Callable[[Value, Value], Value], unsigned: np.dtype[Any], a: int, b: int) -> Compute:
    """Compute that gives unsigned (possibly separable) values to a function of two."""

    def compute(registers: list[Value]) -> Value:
        x, y = registers[a], registers[b]
        if x.dtype is not unsigned and x.__class__ is not values.Separable:
            x = x.view(unsigned)
        if y.dtype is not unsigned and y.__class__ is not values.Separable:
            y = y.view(unsigned)
        return function(x, y)

    return compute


def plain1(function: Callable[[Value], Value], dtype: np.dtype[Any], a: int) -> Compute:
    """Compute that gives a plain value of ``dtype`` to a function."""

    def compute(registers: list[Value]) -> Value:
        x = registers[a]
        return function(x if x.dtype is dtype else x.view(dtype))

    return compute


def plain2(function: Callable[[Value, Value], Value], dtype: np.dtype[Any], a: int, b: int) -> Compute:
    """Compute that gives plain values of ``dtype`` to a function of two."""

    def compute(registers: list[Value]) -> Value:
        x, y = registers[a], registers[b]
        if x.dtype is not dtype:
            x = x.view(dtype)
        if y.dtype is not dtype:
            y = y.view(dtype)
        return function(x, y)

    return compute


def plain3(
    function: Callable[[Value, Value, Value], Value], dtype: np.dtype[Any], a: int, b: int, c: int
) -> Compute:
    """Compute that gives plain values of ``dtype`` to a function of three."""

    def compute(registers: list[Value]) -> Value:
        x, y, z = registers[a], registers[b], registers[c]
        if x.dtype is not dtype:
            x = x.view(dtype)
        if y.dtype is not dtype:
            y = y.view(dtype)
        if z.dtype is not dtype:
            z = z.view(dtype)
        return function(x, y, z)

    return compute


# -- add, sub, mul, mad --------------------------------------------------------------------------------------
def integer_add(instruction: Instruction, lowering: Lowering) -> Operation:
    """``add``, ``sub``, with ``.cc`` the carry out, with ``addc``/``subc`` the carry in."""
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    saturated, carry_out = modifiers.flag("sat"), modifiers.flag("cc")
    modifiers.done()
    subtracting = instruction.opcode.startswith("sub")
    a, b = lowering.sources(instruction, (kind, kind))
    if carry_out or instruction.opcode in {"addc", "subc"}:
        return _carry_add(instruction, lowering, (a, b), kind, carry_out=carry_out)
    if saturated:
        return lowering.assign(
            instruction, plain2(_saturated(kind, subtracting=subtracting), DTYPES[kind], a, b)
        )
    function = values.subtract if subtracting else values.add
    return lowering.assign(instruction, modular2(function, unsigned_of(kind), a, b))


def _saturated(kind: str, *, subtracting: bool) -> Callable[[Value, Value], Value]:
    info = np.iinfo(DTYPES[kind])

    def function(x: Value, y: Value) -> Value:
        x, y = x.astype(np.int64), y.astype(np.int64)
        return np.clip(x - y if subtracting else x + y, info.min, info.max).astype(DTYPES[kind])

    return function


def _carry_add(
    instruction: Instruction, lowering: Lowering, slots: tuple[int, int], kind: str, *, carry_out: bool
) -> Operation:
    """Through 64 bits with the carry (borrow, for subtraction) in the condition-code slot."""
    unsigned = unsigned_of(kind)
    if unsigned.itemsize == U64.itemsize:
        return _carry_add_64(instruction, lowering, slots, carry_out=carry_out)
    uses = instruction.opcode in {"addc", "subc"}
    subtracting = instruction.opcode.startswith("sub")
    put, carry = lowering.writer(instruction, instruction.operands[0]), lowering.carry

    def run(lanes: Lanes, mask: Mask | None) -> None:
        registers = lanes.registers
        x, y = (registers[slot].view(unsigned).astype(U64) for slot in slots)
        flag = registers[carry].view(U32).astype(U64) if uses else np.uint64(0)
        total = x - y - flag if subtracting else x + y + flag
        if carry_out:
            set_carry(lanes, mask, carry, (total >> np.uint64(32)) & np.uint64(1))
        put(lanes, mask, total.astype(unsigned))

    return run


def _carry_add_64(
    instruction: Instruction, lowering: Lowering, slots: tuple[int, int], *, carry_out: bool
) -> Operation:
    uses = instruction.opcode in {"addc", "subc"}
    subtracting = instruction.opcode.startswith("sub")
    put, carry = lowering.writer(instruction, instruction.operands[0]), lowering.carry

    def run(lanes: Lanes, mask: Mask | None) -> None:
        registers = lanes.registers
        x, y = (registers[slot].view(U64) for slot in slots)
        flag = registers[carry].view(U32).astype(U64) if uses else np.uint64(0)
        if subtracting:
            total = x - y - flag
            out = (x < y) | ((x == y) & (flag != 0))
        else:
            total = x + y + flag
            out = (total < x) | ((total == x) & (flag != 0))
        if carry_out:
            set_carry(lanes, mask, carry, out)
        put(lanes, mask, total)

    return run


def set_carry(lanes: Lanes, mask: Mask | None, slot: int, flag: Value) -> None:
    """Write the condition code of the active lanes."""
    bits = flag.astype(U32)
    lanes.registers[slot] = bits if mask is None else mask.select(bits, lanes.registers[slot], U32.itemsize)


def integer_multiply(instruction: Instruction, lowering: Lowering) -> Operation:
    """``mul`` with ``.lo``, ``.hi``, ``.wide``; ``mul24``."""
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    part = modifiers.one("lo", "hi", "wide")
    modifiers.done()
    a, b = lowering.sources(instruction, (kind, kind))
    if instruction.opcode == "mul24":
        if part != "lo":
            raise unsupported(instruction)
        return lowering.assign(instruction, plain2(_mul24(kind), DTYPES[kind], a, b))
    return lowering.assign(instruction, product(instruction, part, kind, a, b))


def product(instruction: Instruction, part: str, kind: str, a: int, b: int) -> Compute:
    """Compute of one part of an integer product.

    Raises:
        UnsupportedOpcode: no part is named, or ``.wide`` of 64 bits.
    """
    if part == "lo":
        return modular2(values.multiply, unsigned_of(kind), a, b)
    if part == "hi":
        return plain2(_high(kind), DTYPES[kind], a, b)
    if part == "wide" and kind in _WIDER:
        narrow, wide = DTYPES[kind], _WIDER[kind]

        def compute(registers: list[Value]) -> Value:
            x = values.widened(registers[a], narrow, wide)
            return values.multiply(x, values.widened(registers[b], narrow, wide))

        return compute
    raise unsupported(instruction)


def _high(kind: str) -> Callable[[Value, Value], Value]:
    dtype = DTYPES[kind]
    if dtype.itemsize < U64.itemsize:
        wide = _WIDER[kind]
        amount = wide.type(8 * dtype.itemsize)
        return lambda x, y: ((x.astype(wide) * y.astype(wide)) >> amount).astype(dtype)
    return _high_64_signed if dtype.kind == "i" else _high_64


def _high_64(x: Value, y: Value) -> Value:
    """Upper 64 bits of an unsigned product, from 32-bit halves."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + ((x0 * y0) >> half)
    return x1 * y1 + (middle >> half) + ((x0 * y1 + (middle & low)) >> half)


def _high_64_signed(x: Value, y: Value) -> Value:
    ux, uy = x.view(U64), y.view(U64)
    corrected = _high_64(ux, uy) - np.where(x < 0, uy, np.uint64(0)) - np.where(y < 0, ux, np.uint64(0))
    return corrected.view(S64)


def _mul24(kind: str) -> Callable[[Value, Value], Value]:
    dtype = DTYPES[kind]
    eight = dtype.type(8)
    return lambda x, y: ((x << eight) >> eight) * ((y << eight) >> eight)


def integer_mad(instruction: Instruction, lowering: Lowering) -> Operation:
    """``mad`` and ``madc`` with ``.lo``, ``.hi``, ``.wide`` and ``.cc``."""
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    part, carry_out = modifiers.one("lo", "hi", "wide"), modifiers.flag("cc")
    modifiers.done()
    wide = (
        {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}.get(kind, kind) if part == "wide" else kind
    )
    a, b, c = lowering.sources(instruction, (kind, kind, wide))
    multiplied = product(instruction, part, kind, a, b)
    unsigned = unsigned_of(wide)
    if not carry_out and instruction.opcode == "mad":

        def compute(registers: list[Value]) -> Value:
            x = values.modular(multiplied(registers), unsigned)
            return values.add(x, values.modular(registers[c], unsigned))

        return lowering.assign(instruction, compute)
    if unsigned is not U32:
        raise unsupported(instruction, "carry of 64 bits")
    put, carry, uses = (
        lowering.writer(instruction, instruction.operands[0]),
        lowering.carry,
        instruction.opcode == "madc",
    )

    def run(lanes: Lanes, mask: Mask | None) -> None:
        registers = lanes.registers
        total = multiplied(registers).view(U32).astype(U64) + registers[c].view(U32).astype(U64)
        if uses:
            total = total + registers[carry].view(U32).astype(U64)
        if carry_out:
            set_carry(lanes, mask, carry, total >> np.uint64(32))
        put(lanes, mask, total.astype(U32))

    return run


# -- division, remainder, min, max ---------------------------------------------------------------------------
def integer_divide(instruction: Instruction, lowering: Lowering) -> Operation:
    """``div`` and ``rem``, which truncate towards zero; by zero the result is unspecified, here all ones."""
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    a, b = lowering.sources(instruction, (kind, kind))
    dtype = DTYPES[kind]
    function = _quotient if instruction.opcode == "div" else _remainder
    return lowering.assign(instruction, plain2(function, dtype, a, b))


def _quotient(x: Value, y: Value) -> Value:
    if x.dtype.kind == "u":
        return np.where(y == 0, ~y.dtype.type(0), x // np.where(y == 0, y.dtype.type(1), y))
    safe = np.where(y == 0, y.dtype.type(1), y)
    floor = x // safe
    uneven = (floor * safe != x) & ((x < 0) != (safe < 0))
    return np.where(y == 0, y.dtype.type(-1), floor + uneven.astype(x.dtype))


def _remainder(x: Value, y: Value) -> Value:
    safe = np.where(y == 0, y.dtype.type(1), y)
    return np.where(y == 0, x, np.fmod(x, safe))


def integer_extreme(instruction: Instruction, lowering: Lowering) -> Operation:
    """``min`` and ``max``."""
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    rectified = modifiers.flag("relu")
    modifiers.done()
    a, b = lowering.sources(instruction, (kind, kind))
    ufunc = np.minimum if instruction.opcode == "min" else np.maximum
    zero = DTYPES[kind].type(0)
    function = (lambda x, y: np.maximum(ufunc(x, y), zero)) if rectified else ufunc
    return lowering.assign(instruction, plain2(function, DTYPES[kind], a, b))


def integer_sign(instruction: Instruction, lowering: Lowering) -> Operation:
    """``abs`` and ``neg``."""
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    (a,) = lowering.sources(instruction, (kind,))
    if instruction.opcode == "abs":
        return lowering.assign(instruction, plain1(np.abs, DTYPES[kind], a))
    unsigned = unsigned_of(kind)
    return lowering.assign(
        instruction, lambda registers: values.negative(values.modular(registers[a], unsigned))
    )
