"""Conversions between number formats (PTX ISA, "Data Movement and Conversion Instructions: cvt")."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_nb.simulator.numbers import formats, rounding, values
from cutegen_nb.simulator.numbers.formats import U16
from cutegen_nb.simulator.numbers.values import DTYPES, F32, F64, S64, Function, Value
from cutegen_nb.simulator.ops.arithmetic.convert_packed import cvt_pack, cvt_pair, cvt_tf32
from cutegen_nb.simulator.ops.arithmetic.convert_small import SMALL_PAIRS, cvt_small
from cutegen_nb.simulator.ops.arithmetic.integer import unsigned_of
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import TYPE_BYTES, Immediate, Instruction
from cutegen_nb.simulator.state.global_memory import UNSIGNED

_TO_INTEGER = ("rni", "rzi", "rmi", "rpi")
"""Integer rounding modifiers: to nearest even, towards zero, down, up."""
_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
_INTEGERS = frozenset({"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"})
_PAIRS = frozenset({"f16x2", "bf16x2", "e4m3x2", "e5m2x2"})
_WIDEN: dict[str, Function] = {
    # A half's NaN widens to the canonical one; bfloat16's keeps its payload, being a shift.
    "f16": lambda bits: formats.canonical(formats.half_to_single(bits)),
    "bf16": formats.bfloat_to_single,
    "f32": lambda x: x, "f64": lambda x: x,
}  # fmt: skip
"""Function from a source's bits to the number, by type."""
_GREATEST = {"f16": np.float64(65504), "bf16": np.float64(2.0**128 - 2.0**120)}
"""Greatest finite number of f16 and bf16 (``.satfinite``)."""


@opcode(
    "cvt",
    forms="integers, f16, bf16, f32, f64 in every pair and rounding, ftz, sat, relu, satfinite; "
    "tf32 rn/rna/rz; f16x2/bf16x2 from two f32; pack; e4m3x2/e5m2x2; e2m1x2, e2m3x2, e3m2x2, ue8m0x2",
)
def _cvt(instruction: Instruction, lowering: Lowering) -> Operation:
    if "pack" in instruction.modifiers:
        return cvt_pack(instruction, lowering)
    modifiers = Modifiers(instruction)
    wanted, kind = modifiers.types(2)
    whole = modifiers.one(*_TO_INTEGER)
    mode = modifiers.one(*rounding.MODES, "rna", default="rn")
    flush, clamp, rectified = modifiers.flag("ftz"), modifiers.flag("sat"), modifiers.flag("relu")
    finite = modifiers.flag("satfinite")
    modifiers.done()
    if wanted in SMALL_PAIRS or kind in SMALL_PAIRS:
        return cvt_small(instruction, lowering, mode, rectified=rectified, finite=finite)
    if wanted in _PAIRS or kind in _PAIRS:
        return cvt_pair(instruction, lowering, mode, rectified=rectified, finite=finite)
    if wanted == "tf32":
        return cvt_tf32(instruction, lowering, mode, rectified=rectified, finite=finite)
    known = {wanted, kind} <= _FLOATS | _INTEGERS and mode != "rna"
    if not known or ((rectified or finite) and wanted not in _GREATEST):
        raise unsupported(instruction)
    (slot,) = lowering.sources(instruction, (kind,))
    if kind in _INTEGERS and wanted in _INTEGERS:
        return _cvt_integers(instruction, lowering, slot, clamp=clamp)
    before = _before(wanted, kind, flush=flush, clamp=clamp, rectified=rectified, finite=finite)
    function = _conversion(wanted, kind, whole=whole, mode=mode)
    flushes = flush and wanted == "f32"  # ``.ftz`` flushes f32 results too (PTX ISA, ``cvt``)
    final = _extended(instruction, lowering, wanted)
    source = _typed_source(instruction, lowering, kind, slot)

    def compute(registers: list[Value]) -> Value:
        result = function(before(source(registers)))
        return final(formats.flushed(result) if flushes else result)

    return lowering.assign(instruction, compute)


def _before(  # noqa: PLR0913 - one for each modifier
    wanted: str, kind: str, *, flush: bool, clamp: bool, rectified: bool, finite: bool
) -> Function:
    """Function that modifiers apply to the exact number before rounding.

    Clamping before rounding is the same as after: rounding is monotonic, and the bounds are representable.
    """
    steps: list[Function] = []
    if flush and kind == "f32" and wanted not in {"f16", "bf16"}:
        steps.append(formats.flushed)  # the H200 keeps a subnormal that it rounds to a half
    if clamp and wanted in _FLOATS:
        steps.append(lambda x: formats.saturated(x if x.dtype.kind == "f" else x.astype(F64)))
    if rectified:
        steps.append(lambda x: np.maximum(x, x.dtype.type(0)) + x.dtype.type(0))  # −0 + 0 is +0
    if finite:
        steps.append(lambda x: np.clip(x.astype(F64), -_GREATEST[wanted], _GREATEST[wanted]))
    if not steps:
        return lambda x: x

    def run(x: Value) -> Value:
        for step in steps:
            x = step(x)
        return x

    return run


def _typed_source(instruction: Instruction, lowering: Lowering, kind: str, slot: int) -> Function:
    """Function that reads the source as a number; it may be narrower than its register.

    See PTX ISA, "Operand Size Exceeding Instruction-Type Size".
    """
    width = lowering.width(instruction.operands[1], kind)
    unsigned, dtype = unsigned_of(kind), DTYPES[kind] if kind != "f16" else U16
    widen = _WIDEN.get(kind)
    if isinstance(instruction.operands[1], Immediate):
        width = TYPE_BYTES[kind]

    def read(registers: list[Value]) -> Value:
        x = registers[slot]
        if width != unsigned.itemsize:
            x = x.view(UNSIGNED[width]).astype(unsigned)
        x = x.view(dtype)
        return widen(x) if widen else x

    return read


def _extended(instruction: Instruction, lowering: Lowering, wanted: str) -> Function:
    """Function that extends a result of type ``wanted`` to its register, by the sign or by zeros."""
    width = lowering.width(instruction.operands[0], wanted)
    own = TYPE_BYTES[wanted]
    dtype = DTYPES[wanted]
    if width == own:
        return lambda x: x
    if dtype.kind == "i":
        signed = np.dtype(f"i{width}")
        return lambda x: x.view(dtype).astype(signed).view(UNSIGNED[width])
    return lambda x: x.view(UNSIGNED[own]).astype(UNSIGNED[width])


# -- integers to integers ------------------------------------------------------------------------------------
def _cvt_integers(instruction: Instruction, lowering: Lowering, slot: int, *, clamp: bool) -> Operation:
    wanted, kind = instruction.modifiers[-2:]
    source_width = lowering.width(instruction.operands[1], kind)
    target_width = lowering.width(instruction.operands[0], wanted)
    narrow, dtype = DTYPES[kind], DTYPES[wanted]
    plain = source_width == TYPE_BYTES[kind] and target_width == TYPE_BYTES[wanted] and not clamp
    if plain and dtype.itemsize > narrow.itemsize:
        # The source's signedness decides how it is extended.
        wide = np.dtype(f"{narrow.kind}{dtype.itemsize}")
        return lowering.assign(instruction, lambda registers: values.widened(registers[slot], narrow, wide))
    if plain and dtype.itemsize == narrow.itemsize:
        return lowering.assign(instruction, lambda registers: registers[slot])
    if plain:
        return lowering.assign(instruction, lambda registers: _cut(registers[slot], UNSIGNED[dtype.itemsize]))
    read, final = _typed_source(instruction, lowering, kind, slot), _extended(instruction, lowering, wanted)
    info, own = np.iinfo(dtype), np.iinfo(narrow)
    # ``.sat`` clamps in the source type, to the part of the target's range that it can hold.
    low, high = narrow.type(max(info.min, own.min)), narrow.type(min(info.max, own.max))

    def compute(registers: list[Value]) -> Value:
        x = read(registers)
        return final((np.clip(x, low, high) if clamp else x).astype(dtype))

    return lowering.assign(instruction, compute)


def _cut(x: Value, unsigned: np.dtype[Any]) -> Value:
    """Low bits of an integer; a ``Separable`` stays separable."""
    if x.__class__ is values.Separable:
        return values.Separable(x.column.astype(unsigned), x.row.astype(unsigned))
    return x.view(UNSIGNED[x.dtype.itemsize]).astype(unsigned)


# -- with floats ---------------------------------------------------------------------------------------------
def _conversion(wanted: str, kind: str, *, whole: str, mode: str) -> Function:
    """Function from a number of ``kind`` (f16 and bf16 as float32) to ``wanted`` (f16 and bf16 as bits)."""
    if wanted in _INTEGERS:
        form, integer = whole or "rzi", DTYPES[wanted]
        return lambda x: formats.integer_of(x, form, integer, wide_source=kind == "f64")
    narrow = _narrowing(wanted, kind, mode)
    if whole:
        return lambda x: narrow(formats.rounded_to_integer(x, whole))
    # Integers of up to 32 bits are exact in float64. Those of 64 bits are given as an exact sum of two.
    if kind in _FLOATS or DTYPES[kind].itemsize < S64.itemsize:
        return narrow
    if mode == "rn" and wanted in {"f32", "f64"}:
        return lambda x: x.astype(DTYPES[wanted])
    if wanted == "f64":
        return lambda x: rounding.double("add", mode)(*_halves(x))
    return lambda x: narrow(rounding.sum_to_odd(*_halves(x)))


def _halves(x: Value) -> tuple[Value, Value]:
    """Split a 64-bit integer into two exact float64: the upper 32 bits and the lower ones."""
    if x.dtype.kind == "f":  # saturated before
        return x, np.zeros_like(x)
    shift, low = x.dtype.type(32), x.dtype.type(0xFFFFFFFF)
    # An arithmetic shift keeps the sign in the upper part: x = upper × 2**32 + lower, lower ≥ 0.
    return (x >> shift).astype(F64) * np.float64(2.0**32), (x & low).astype(F64)


def _narrowing(wanted: str, kind: str, mode: str) -> Function:
    """Function from a float, or an integer exact in float64, to ``wanted``, rounded once as ``mode``."""
    if wanted == "f64":
        return lambda x: x.astype(F64)
    if wanted == "f32":
        if kind in {"f32", "f16", "bf16"}:
            return lambda x: formats.canonical(x.astype(F32)) if kind == "f32" else x
        return lambda x: rounding.toward(x.astype(F64), mode)
    if mode == "rn" and kind in {"f32", "f16", "bf16"}:
        nearest = formats.single_to_half if wanted == "f16" else formats.single_to_bfloat
        return lambda x: nearest(x.astype(F32))
    return lambda x: rounding.narrow_bits(x.astype(F64), wanted, mode)
