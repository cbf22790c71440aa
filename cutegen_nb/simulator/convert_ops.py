"""Conversions between number formats (PTX ISA, ``cvt``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutegen_nb.simulator import formats, values
from cutegen_nb.simulator.faults import unsupported
from cutegen_nb.simulator.formats import U16
from cutegen_nb.simulator.integer_ops import plain1, unsigned_of
from cutegen_nb.simulator.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.memory import UNSIGNED
from cutegen_nb.simulator.ptx_model import TYPE_BYTES, Immediate, Instruction
from cutegen_nb.simulator.values import DTYPES, F32, F64, U32, U64, Value

Function = Callable[..., Value]
_TO_INTEGER = ("rni", "rzi", "rmi", "rpi")
_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
_WIDEN: dict[str, Function] = {
    "f16": formats.half_to_single, "bf16": formats.bfloat_to_single,
    "f32": lambda x: x, "f64": lambda x: x,
}  # fmt: skip


@opcode(
    "cvt", forms="integers, f16, bf16, f32, f64, tf32, f16x2/bf16x2 from f32; all roundings, ftz, sat, relu"
)
def _cvt(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    wanted, kind = modifiers.types(2)
    whole = modifiers.one(*_TO_INTEGER)
    mode = modifiers.one("rn", "rz", "rm", "rp", "rna", default="rn")
    flush, clamp, rectified = modifiers.flag("ftz"), modifiers.flag("sat"), modifiers.flag("relu")
    finite = wanted in {"tf32", "f16x2", "bf16x2"} and modifiers.flag("satfinite")
    modifiers.done()
    if wanted in {"f16x2", "bf16x2"}:
        return _cvt_pair(instruction, lowering, mode, rectified=rectified, finite=finite)
    (slot,) = lowering.sources(instruction, (kind,))
    if wanted == "tf32":
        return lowering.assign(instruction, plain1(_tf32(mode, instruction), U32, slot))
    if kind not in _FLOATS and wanted not in _FLOATS:
        return _cvt_integers(instruction, lowering, slot, clamp=clamp)
    function = _conversion(instruction, wanted, kind, whole=whole, mode=mode)
    final = _extended(instruction, lowering, wanted)
    source = _typed_source(instruction, lowering, kind, slot)

    def compute(registers: list[Value]) -> Value:
        x = source(registers)
        result = function(formats.flushed(x) if flush and x.dtype is F32 else x)
        if result.dtype.kind == "f":
            if clamp:
                result = formats.saturated(result)
            if rectified:
                result = np.maximum(result, result.dtype.type(0))
            if flush and result.dtype is F32:
                result = formats.flushed(result)
        return final(result)

    return lowering.assign(instruction, compute)


def _typed_source(instruction: Instruction, lowering: Lowering, kind: str, slot: int) -> Function:
    """Reads the source, narrower than its register where PTX allows that, as a number."""
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
    """Puts a result of type ``wanted`` into its register, which may be wider."""
    width = lowering.width(instruction.operands[0], wanted)
    own = TYPE_BYTES[wanted]
    narrow = {"f16": formats.single_to_half, "bf16": formats.single_to_bfloat}.get(wanted)
    dtype = DTYPES[wanted]

    def put(x: Value) -> Value:
        if narrow is not None:
            x = narrow(x) if x.dtype.kind == "f" else x
        elif x.dtype is not dtype:
            x = x.astype(dtype)
        if width == own:
            return x
        wide = np.dtype(f"i{width}") if dtype.kind == "i" else UNSIGNED[width]
        return (x if dtype.kind in "iu" else x.view(UNSIGNED[own])).astype(wide).view(UNSIGNED[width])

    return put


def _cvt_integers(instruction: Instruction, lowering: Lowering, slot: int, *, clamp: bool) -> Operation:
    wanted, kind = instruction.modifiers[-2:]
    source_width = lowering.width(instruction.operands[1], kind)
    target_width = lowering.width(instruction.operands[0], wanted)
    narrow, dtype = DTYPES[kind], DTYPES[wanted]
    plain = source_width == TYPE_BYTES[kind] and target_width == TYPE_BYTES[wanted] and not clamp
    if plain and dtype.itemsize > narrow.itemsize:
        wide = np.dtype(f"{narrow.kind}{dtype.itemsize}")
        return lowering.assign(instruction, lambda registers: values.widened(registers[slot], narrow, wide))
    if plain and dtype.itemsize == narrow.itemsize:
        return lowering.assign(instruction, lambda registers: registers[slot])
    if plain:
        return lowering.assign(instruction, lambda registers: _cut(registers[slot], UNSIGNED[dtype.itemsize]))
    read, final = _typed_source(instruction, lowering, kind, slot), _extended(instruction, lowering, wanted)
    info = np.iinfo(dtype)

    def compute(registers: list[Value]) -> Value:
        x = read(registers)
        if clamp:
            own = np.iinfo(narrow)
            x = np.clip(x, max(info.min, own.min), min(info.max, own.max))
        return final(x)

    return lowering.assign(instruction, compute)


def _cut(x: Value, unsigned: np.dtype[Any]) -> Value:
    """Low bits of an integer; what is separable stays so."""
    if x.__class__ is values.Separable:
        return values.Separable(x.column.astype(unsigned), x.row.astype(unsigned))
    return x.view(UNSIGNED[x.dtype.itemsize]).astype(unsigned)


def _conversion(instruction: Instruction, wanted: str, kind: str, *, whole: str, mode: str) -> Function:
    """Between a float (halves as float32) and a number of another type."""
    if wanted not in _FLOATS:
        rounding, integer = whole or "rzi", DTYPES[wanted]
        return lambda x: formats.integer_of(x, rounding, integer)
    if whole:
        return lambda x: formats.rounded_to_integer(x, whole)
    if kind in _FLOATS:
        return _between_floats(instruction, wanted, kind, mode)
    if wanted == "f64":
        return lambda x: x.astype(F64)
    if mode == "rn":
        return _integer_to_half(wanted) if wanted in {"f16", "bf16"} else (lambda x: x.astype(F32))
    if DTYPES[kind].itemsize == U64.itemsize or wanted != "f32":
        raise unsupported(instruction)
    return lambda x: formats.toward(x.astype(F64), mode)


def _integer_to_half(wanted: str) -> Function:
    if wanted == "f16":
        return lambda x: formats.single_to_half(x.astype(F64))
    return lambda x: formats.double_to_bfloat(x.astype(F64))


def _between_floats(instruction: Instruction, wanted: str, kind: str, mode: str) -> Function:
    if wanted == "f64":
        return lambda x: x.astype(F64)
    if wanted == "f32":
        return (lambda x: formats.toward(x, mode)) if kind == "f64" else (lambda x: x)
    if mode == "rz":
        return lambda x: _half_toward_zero(x, wanted)
    if mode != "rn":
        raise unsupported(instruction)
    if kind == "f64":
        return formats.single_to_half if wanted == "f16" else formats.double_to_bfloat
    return lambda x: x


def _half_toward_zero(x: Value, wanted: str) -> Value:
    if wanted == "bf16":
        bits = x.astype(F32).view(U32) >> np.uint32(16)
        return np.where(np.isnan(x), np.uint32(0x7FFF), bits).astype(U16)
    half = x.astype(np.float16)
    away = np.abs(half.astype(F64)) > np.abs(x.astype(F64))
    return np.where(away & np.isfinite(x), np.nextafter(half, np.float16(0)), half).view(U16)


def _cvt_pair(
    instruction: Instruction, lowering: Lowering, mode: str, *, rectified: bool, finite: bool
) -> Operation:
    """``d = {a, b}``: the first operand goes to the upper half."""
    half = instruction.modifiers[-2].removesuffix("x2")
    a, b = lowering.sources(instruction, ("f32", "f32"))
    if mode not in {"rn", "rz"}:
        raise unsupported(instruction)
    nearest = formats.single_to_half if half == "f16" else formats.single_to_bfloat
    greatest = _GREATEST[half]

    def narrow(x: Value) -> Value:
        if rectified:
            x = np.maximum(x, np.float32(0))
        if finite:
            x = np.clip(x, -greatest, greatest)
        return nearest(x) if mode == "rn" else _half_toward_zero(x, half)

    def compute(registers: list[Value]) -> Value:
        high, low = narrow(registers[a].view(F32)), narrow(registers[b].view(F32))
        return (high.astype(U32) << np.uint32(16)) | low.astype(U32)

    return lowering.assign(instruction, compute)


_GREATEST = {"f16": np.float32(65504), "bf16": np.uint32(0x7F7F0000).view(np.float32)}
"""Greatest finite number of each half type (``.satfinite``)."""


def _tf32(mode: str, instruction: Instruction) -> Function:
    """TensorFloat-32: 10 fraction bits, ties away (rna), to even (rn) or towards zero (rz)."""
    if mode not in {"rn", "rna", "rz"}:
        raise unsupported(instruction)
    kept = np.uint32(0xFFFFE000)

    def function(bits: Value) -> Value:
        if mode == "rz":
            return bits & kept
        half = (
            np.uint32(0x1000)
            if mode == "rna"
            else np.uint32(0x0FFF) + ((bits >> np.uint32(13)) & np.uint32(1))
        )
        special = (bits & np.uint32(0x7F800000)) == np.uint32(0x7F800000)
        return np.where(special, bits, (bits + half) & kept)

    return function
