"""Integer arithmetic (PTX ISA, "Integer Arithmetic", "Extended-Precision Integer Arithmetic")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutegen_nb.simulator.numbers import values
from cutegen_nb.simulator.numbers.formats import halves, joined
from cutegen_nb.simulator.numbers.values import DTYPES, S32, S64, U32, U64, Value
from cutegen_nb.simulator.ops.arithmetic.carry import carry_add, carry_mad
from cutegen_nb.simulator.ops.lowering import Compute, Lowering, Modifiers, Operation
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import TYPE_BYTES, Instruction

INTEGERS = frozenset({"u16", "s16", "u32", "s32", "u64", "s64", "u16x2", "s16x2"})
"""Types of integer arithmetic; other types of the same opcodes are floats."""
_WIDER = {"u16": U32, "s16": S32, "u32": U64, "s32": S64}
"""Type of twice the width, for full products."""


PAIRS: dict[str, np.dtype[Any]] = {"u16x2": np.dtype(np.uint16), "s16x2": np.dtype(np.int16)}
"""Packed integer types with the dtype of one half."""


def unsigned_of(kind: str) -> np.dtype[Any]:
    """Unsigned dtype of the width of a PTX type."""
    return np.dtype(f"u{TYPE_BYTES[kind]}")


def modular2(function: Callable[[Value, Value], Value], unsigned: np.dtype[Any], a: int, b: int) -> Compute:
    """Compute that applies a function to two unsigned (possibly ``Separable``) registers."""

    def compute(registers: list[Value]) -> Value:
        x, y = registers[a], registers[b]
        # NumPy has one dtype object for each native type, so identity is enough.
        if x.dtype is not unsigned and x.__class__ is not values.Separable:
            x = x.view(unsigned)
        if y.dtype is not unsigned and y.__class__ is not values.Separable:
            y = y.view(unsigned)
        return function(x, y)

    return compute


def compute1(function: Callable[[Value], Value], dtype: np.dtype[Any], a: int) -> Compute:
    """Compute that applies a function to one register, viewed as ``dtype``."""

    def compute(registers: list[Value]) -> Value:
        x = registers[a]
        return function(x if x.dtype is dtype else x.view(dtype))

    return compute


def compute2(function: Callable[[Value, Value], Value], dtype: np.dtype[Any], a: int, b: int) -> Compute:
    """Compute that applies a function to two registers, viewed as ``dtype``."""

    def compute(registers: list[Value]) -> Value:
        x, y = registers[a], registers[b]
        if x.dtype is not dtype:
            x = x.view(dtype)
        if y.dtype is not dtype:
            y = y.view(dtype)
        return function(x, y)

    return compute


def compute3(
    function: Callable[[Value, Value, Value], Value], dtype: np.dtype[Any], a: int, b: int, c: int
) -> Compute:
    """Compute that applies a function to three registers, viewed as ``dtype``."""

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


def on_pairs(function: Callable[[Value, Value], Value], kind: str, a: int, b: int) -> Compute:
    """Compute that applies a function to the 16-bit halves of two packed registers."""
    part = PAIRS[kind]

    def compute(registers: list[Value]) -> Value:
        return joined(function(halves(registers[a], part), halves(registers[b], part)).astype(part))

    return compute


# -- add, sub, mul, mad --------------------------------------------------------------------------------------
def integer_add(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of integer ``add``, ``sub``, ``addc`` and ``subc``, with carry out for ``.cc``."""
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    saturated, carry_out = modifiers.flag("sat"), modifiers.flag("cc")
    modifiers.done()
    subtracting = instruction.opcode.startswith("sub")
    a, b = lowering.sources(instruction, (kind, kind))
    if carry_out or instruction.opcode in {"addc", "subc"}:
        return carry_add(instruction, lowering, (a, b), kind, carry_out=carry_out)
    if kind in PAIRS:
        if saturated:
            raise unsupported(instruction)
        pair = np.subtract if subtracting else np.add
        return lowering.assign(instruction, on_pairs(pair, kind, a, b))
    if saturated:
        if kind != "s32":
            raise unsupported(instruction, "modifier .sat")
        return lowering.assign(
            instruction, compute2(_saturated(kind, subtracting=subtracting), DTYPES[kind], a, b)
        )
    function = values.subtract if subtracting else values.add
    return lowering.assign(instruction, modular2(function, unsigned_of(kind), a, b))


def _saturated(kind: str, *, subtracting: bool) -> Callable[[Value, Value], Value]:
    """Function for a sum or difference clamped to the type (``.sat``); int64 holds it exactly for s32."""
    info = np.iinfo(DTYPES[kind])

    def function(x: Value, y: Value) -> Value:
        x, y = x.astype(np.int64), y.astype(np.int64)
        return np.clip(x - y if subtracting else x + y, info.min, info.max).astype(DTYPES[kind])

    return function


def integer_multiply(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of integer ``mul`` with ``.lo``, ``.hi`` or ``.wide``, and of ``mul24``."""
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    part = modifiers.one("lo", "hi", "wide")
    modifiers.done()
    a, b = lowering.sources(instruction, (kind, kind))
    if instruction.opcode == "mul24":
        return lowering.assign(instruction, compute2(_mul24(instruction, part, kind), DTYPES[kind], a, b))
    return lowering.assign(instruction, product(instruction, part, kind, a, b))


def product(instruction: Instruction, part: str, kind: str, a: int, b: int) -> Compute:
    """Compute of an integer product: its low half, its high half, or all of it (``.wide``).

    Raises:
        UnsupportedOpcode: no part is named, or ``.wide`` of 64 bits.
    """
    if kind in PAIRS:
        raise unsupported(instruction)
    if part == "lo":
        return modular2(values.multiply, unsigned_of(kind), a, b)
    if part == "hi":
        return compute2(_high(kind), DTYPES[kind], a, b)
    if part == "wide" and kind in _WIDER:
        narrow, wide = DTYPES[kind], _WIDER[kind]

        def compute(registers: list[Value]) -> Value:
            # Extended to twice the width first, factors have a product that cannot overflow.
            x = values.widened(registers[a], narrow, wide)
            return values.multiply(x, values.widened(registers[b], narrow, wide))

        return compute
    raise unsupported(instruction)


def _high(kind: str) -> Callable[[Value, Value], Value]:
    dtype = DTYPES[kind]
    if dtype.itemsize < U64.itemsize:
        wide = _WIDER[kind]
        amount = wide.type(8 * dtype.itemsize)
        return lambda x, y: ((x.astype(wide) * y.astype(wide)) >> amount).astype(dtype)  # upper half
    return _high_64_signed if dtype.kind == "i" else _high_64


def _high_64(x: Value, y: Value) -> Value:
    """Upper 64 bits of an unsigned product, from 32-bit halves whose partial sums never overflow."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + ((x0 * y0) >> half)
    return x1 * y1 + (middle >> half) + ((x0 * y1 + (middle & low)) >> half)


def _high_64_signed(x: Value, y: Value) -> Value:
    # As unsigned numbers negative operands are 2**64 too large, which adds the other one to the upper half.
    ux, uy = x.view(U64), y.view(U64)
    corrected = _high_64(ux, uy) - np.where(x < 0, uy, np.uint64(0)) - np.where(y < 0, ux, np.uint64(0))
    return corrected.view(S64)


def _mul24(instruction: Instruction, part: str, kind: str) -> Callable[[Value, Value], Value]:
    """Product of 24-bit numbers: the lower 32 of its 48 bits, or bits 16 to 47 (PTX ISA, ``mul24``)."""
    if kind not in {"u32", "s32"} or part not in {"lo", "hi"}:
        raise unsupported(instruction)
    dtype = DTYPES[kind]
    wide = _WIDER[kind]
    eight, half = dtype.type(8), wide.type(16 if part == "hi" else 0)

    def function(x: Value, y: Value) -> Value:
        left, right = ((one << eight) >> eight for one in (x, y))  # the low 24 bits, extended as the type is
        return ((left.astype(wide) * right.astype(wide)) >> half).astype(dtype)

    return function


def integer_mad24(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of ``mad24``: a 24-bit product plus an addend, saturated with ``.hi.sat.s32``."""
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    part, saturated = modifiers.one("lo", "hi"), modifiers.flag("sat")
    modifiers.done()
    if saturated and (kind, part) != ("s32", "hi"):
        raise unsupported(instruction, "modifier .sat")
    a, b, c = lowering.sources(instruction, (kind, kind, kind))
    multiplied = _mul24(instruction, part, kind)
    add = _saturated(kind, subtracting=False) if saturated else np.add
    return lowering.assign(
        instruction, compute3(lambda x, y, z: add(multiplied(x, y), z), DTYPES[kind], a, b, c)
    )


def integer_mad(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of integer ``mad`` and ``madc`` with ``.lo``, ``.hi``, ``.wide``, ``.cc`` and ``.hi.sat``."""
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    part, carry_out, saturated = (
        modifiers.one("lo", "hi", "wide"),
        modifiers.flag("cc"),
        modifiers.flag("sat"),
    )
    modifiers.done()
    wide = (
        {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}.get(kind, kind) if part == "wide" else kind
    )
    a, b, c = lowering.sources(instruction, (kind, kind, wide))
    multiplied = product(instruction, part, kind, a, b)
    unsigned = unsigned_of(wide)
    if carry_out or instruction.opcode == "madc":
        return carry_mad(instruction, lowering, (multiplied, c), unsigned, carry_out=carry_out)
    if saturated:
        if (kind, part) != ("s32", "hi"):
            raise unsupported(instruction, "modifier .sat")
        add = _saturated(kind, subtracting=False)
        return lowering.assign(
            instruction, lambda registers: add(multiplied(registers).view(S32), registers[c].view(S32))
        )

    def compute(registers: list[Value]) -> Value:
        x = values.modular(multiplied(registers), unsigned)
        return values.add(x, values.modular(registers[c], unsigned))

    return lowering.assign(instruction, compute)


# -- division, remainder, min, max ---------------------------------------------------------------------------
def integer_divide(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of integer ``div`` and ``rem``, which truncate towards zero.

    The PTX ISA leaves division by zero unspecified; here both give all ones.
    """
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    a, b = lowering.sources(instruction, (kind, kind))
    dtype = DTYPES[kind]
    function = _quotient if instruction.opcode == "div" else _remainder
    return lowering.assign(instruction, compute2(function, dtype, a, b))


def _quotient(x: Value, y: Value) -> Value:
    if x.dtype.kind == "u":
        return np.where(y == 0, ~y.dtype.type(0), x // np.where(y == 0, y.dtype.type(1), y))
    safe = np.where(y == 0, y.dtype.type(1), y)
    # NumPy rounds a quotient down: one more where it is negative and not exact.
    floor = x // safe
    uneven = (floor * safe != x) & ((x < 0) != (safe < 0))
    return np.where(y == 0, y.dtype.type(-1), floor + uneven.astype(x.dtype))


def _remainder(x: Value, y: Value) -> Value:
    safe = np.where(y == 0, y.dtype.type(1), y)
    return np.where(y == 0, np.invert(y), np.fmod(x, safe))  # fmod has the sign of x, as truncation gives


def integer_extreme(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of integer ``min`` and ``max``, packed halves included; ``.relu`` raises negatives to 0."""
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    rectified = modifiers.flag("relu")
    modifiers.done()
    if rectified and kind not in {"s32", "s16x2"}:
        raise unsupported(instruction, "modifier .relu")
    a, b = lowering.sources(instruction, (kind, kind))
    ufunc = np.minimum if instruction.opcode == "min" else np.maximum
    dtype = PAIRS.get(kind, DTYPES[kind])
    zero = dtype.type(0)
    function = (lambda x, y: np.maximum(ufunc(x, y), zero)) if rectified else ufunc
    if kind in PAIRS:
        return lowering.assign(instruction, on_pairs(function, kind, a, b))
    return lowering.assign(instruction, compute2(function, dtype, a, b))


def integer_sign(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of integer ``abs`` and ``neg``."""
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    if kind not in {"s16", "s32", "s64"}:
        raise unsupported(instruction)
    (a,) = lowering.sources(instruction, (kind,))
    if instruction.opcode == "abs":
        # The least number is its own absolute value, modulo 2**bits.
        return lowering.assign(instruction, compute1(np.abs, DTYPES[kind], a))
    unsigned = unsigned_of(kind)
    return lowering.assign(
        instruction, lambda registers: values.negative(values.modular(registers[a], unsigned))
    )
