"""Moves, comparisons, selections and conversions (PTX ISA, "Comparison and Selection", "Data Movement")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutegen_nb.simulator import formats, values
from cutegen_nb.simulator.faults import unsupported
from cutegen_nb.simulator.float_ops import U16
from cutegen_nb.simulator.integer_ops import plain1, unsigned_of
from cutegen_nb.simulator.lanes import Lanes, Mask
from cutegen_nb.simulator.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.memory import UNSIGNED
from cutegen_nb.simulator.ptx_model import TYPE_BYTES, Immediate, Instruction, Register, Symbol, Vector
from cutegen_nb.simulator.values import BOOL, DTYPES, F32, F64, U32, U64, Value

Function = Callable[..., Value]
GENERIC_SHARED = 1 << 56
"""Where the shared window begins in the generic address space of this machine."""
GENERIC_LOCAL = 1 << 57
"""Where the local window begins there."""
WINDOWS = {"shared": GENERIC_SHARED, "local": GENERIC_LOCAL, "param": 0, "global": 0, "const": 0}


# -- mov ------------------------------------------------------------------------------------------------------
@opcode("mov", forms="pred, b/u/s/f 16–64, packing and unpacking {…}, addresses of variables")
def _mov(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    target, origin = instruction.operands
    if isinstance(target, Vector):
        return _unpack(instruction, lowering, target, kind)
    if isinstance(origin, Vector):
        return _pack(instruction, lowering, origin, kind)
    slot = _moved(instruction, lowering, origin, kind)
    wanted = lowering.width(target, kind)
    if lowering.width(origin, kind) == wanted:
        return lowering.assign(instruction, lambda registers: registers[slot])
    unsigned = UNSIGNED[wanted]
    narrow = UNSIGNED[lowering.width(origin, kind)]
    return lowering.assign(instruction, plain1(lambda x: x.astype(unsigned), narrow, slot))


def _moved(instruction: Instruction, lowering: Lowering, origin: object, kind: str) -> int:
    if isinstance(origin, Symbol):
        space, address = lowering.symbols(origin.name)
        if space == "const" or space == "global":
            return lowering.constant(np.uint64(address + origin.offset))
        return lowering.constant(unsigned_of(kind).type(address + origin.offset))
    return lowering.source(instruction, origin, kind)  # type: ignore[arg-type]


def _unpack(instruction: Instruction, lowering: Lowering, target: Vector, kind: str) -> Operation:
    (slot,) = lowering.sources(instruction, (kind,))
    puts = [lowering.writer(instruction, one) for one in target.items]
    whole = unsigned_of(kind)
    width = whole.itemsize // len(puts)
    part = UNSIGNED[width]

    def run(lanes: Lanes, mask: Mask | None) -> None:
        value = lanes.registers[slot].view(whole)
        for index, put in enumerate(puts):
            put(lanes, mask, (value >> whole.type(8 * width * index)).astype(part))

    return run


def _pack(instruction: Instruction, lowering: Lowering, origin: Vector, kind: str) -> Operation:
    whole = unsigned_of(kind)
    width = whole.itemsize // len(origin.items)
    part = UNSIGNED[width]
    slots = [lowering.source(instruction, one, f"b{8 * width}") for one in origin.items]

    def compute(registers: list[Value]) -> Value:
        result: Value = whole.type(0)
        for index, slot in enumerate(slots):
            result = result | (registers[slot].view(part).astype(whole) << whole.type(8 * width * index))
        return result

    return lowering.assign(instruction, compute)


@opcode("cvta", forms="to and from global, shared, local, const, param; u32, u64")
def _cvta(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    inward = modifiers.flag("to")
    space = modifiers.one("global", "shared", "local", "const", "param", "shared::cta")
    modifiers.done()
    if kind != "u64":
        raise unsupported(instruction)
    origin = instruction.operands[1]
    slot = _moved(instruction, lowering, origin, kind)
    if isinstance(origin, Symbol) and inward:
        raise unsupported(instruction)
    window = np.uint64(WINDOWS[space.removesuffix("::cta")])
    amount = np.negative(window) if inward else window
    return lowering.assign(instruction, lambda registers: values.add(values.modular(registers[slot], U64), amount))


# -- comparison and selection ---------------------------------------------------------------------------------
_ORDERED: dict[str, Any] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
_UNORDERED = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}
_COMPARISONS = (*_ORDERED, *_UNORDERED, "num", "nan")
_COMBINE: dict[str, Any] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def comparison(name: str, kind: str) -> Function:
    """Function of two plain values that gives booleans; unordered forms hold for NaN, ordered ones do not."""
    if DTYPES[kind].kind != "f" and kind != "bf16":
        return _ORDERED[name]
    if name == "num":
        return lambda x, y: ~(np.isnan(x) | np.isnan(y))
    if name == "nan":
        return lambda x, y: np.isnan(x) | np.isnan(y)
    if name == "ne":
        return lambda x, y: (x < y) | (x > y)
    if name in _ORDERED:
        return _ORDERED[name]
    ufunc = _ORDERED[_UNORDERED[name]]
    if name == "neu":
        return ufunc
    return lambda x, y: ufunc(x, y) | np.isnan(x) | np.isnan(y)


def _decided(name: str, bounds: tuple[int, int], limit: int) -> bool | None:
    """What a comparison gives for every number within bounds; None where it differs among them."""
    low, high = bounds
    ufunc = _ORDERED[name]
    if name in {"eq", "ne"}:
        return name == "ne" if limit < low or limit > high else None
    first, last = bool(ufunc(low, limit)), bool(ufunc(high, limit))
    return first if first == last else None


def _compare(instruction: Instruction, lowering: Lowering, kind: str, name: str) -> Function:
    """Function of the registers that gives booleans."""
    a, b = (lowering.source(instruction, one, kind) for one in instruction.operands[1:3])
    function = comparison(name, kind)
    if kind in {"f16", "bf16"}:
        widen = formats.half_to_single if kind == "f16" else formats.bfloat_to_single
        return lambda registers: function(widen(registers[a].view(U16)), widen(registers[b].view(U16)))
    dtype = DTYPES[kind]
    if dtype.kind == "u" and kind.startswith("s"):
        raise unsupported(instruction)

    def compute(registers: list[Value]) -> Value:
        x, y = registers[a], registers[b]
        if x.dtype is not dtype:
            if x.__class__ is values.Separable and y.__class__ is not values.Separable and y.ndim == 0:
                bounds = x.bounds(dtype)
                known = None if bounds is None else _decided(name, bounds, int(y.view(dtype)))
                if known is not None:
                    return np.bool_(known)
            x = x.view(dtype)
        if y.dtype is not dtype:
            y = y.view(dtype)
        return function(x, y)

    return compute


@opcode("setp", forms="all comparisons, .and/.or/.xor, p|q; integers, f16, bf16, f32, f64, ftz; f16x2, bf16x2")
def _setp(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    name, flush = modifiers.one(*_COMPARISONS), modifiers.flag("ftz")
    combine = modifiers.one(*_COMBINE)
    modifiers.done()
    del flush  # comparing flushed subnormals differs only between subnormals and zero
    if not name:
        raise unsupported(instruction)
    if kind.endswith("x2"):
        return _setp_pair(instruction, lowering, kind.removesuffix("x2"), name, combine)
    compare = _compare(instruction, lowering, kind, name)
    third = instruction.operands[3] if combine else None
    slot = lowering.source(instruction, third, "pred") if isinstance(third, Register) else None
    negated = isinstance(third, Register) and third.negated

    def combined(truth: Value, registers: list[Value]) -> Value:
        if slot is None:
            return truth
        other = np.logical_not(registers[slot]) if negated else registers[slot]
        return _COMBINE[combine](truth, other)

    target = instruction.operands[0]
    if not isinstance(target, Vector):
        return lowering.assign(instruction, lambda registers: combined(compare(registers), registers))
    first, second = (lowering.writer(instruction, one) for one in target.items)

    def run(lanes: Lanes, mask: Mask | None) -> None:
        truth = compare(lanes.registers)
        yes, no = combined(truth, lanes.registers), combined(np.logical_not(truth), lanes.registers)
        first(lanes, mask, yes)
        second(lanes, mask, no)

    return run


def _setp_pair(instruction: Instruction, lowering: Lowering, half: str, name: str, combine: str) -> Operation:
    target = instruction.operands[0]
    if combine or not isinstance(target, Vector):
        raise unsupported(instruction)
    a, b = (lowering.source(instruction, one, "b32") for one in instruction.operands[1:3])
    first, second = (lowering.writer(instruction, one) for one in target.items)
    widen = formats.half_to_single if half == "f16" else formats.bfloat_to_single
    function = comparison(name, "f32")

    def run(lanes: Lanes, mask: Mask | None) -> None:
        x, y = lanes.registers[a].view(U32), lanes.registers[b].view(U32)
        high = np.uint32(16)
        low = function(widen(x.astype(U16)), widen(y.astype(U16)))
        top = function(widen((x >> high).astype(U16)), widen((y >> high).astype(U16)))
        first(lanes, mask, low)
        second(lanes, mask, top)

    return run


@opcode("set", forms="to u32, s32, f32 from integers, f32, f64")
def _set(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    wanted, kind = modifiers.types(2)
    name = modifiers.one(*_COMPARISONS)
    modifiers.skip("ftz")
    modifiers.done()
    if wanted not in {"u32", "s32", "f32"} or not name:
        raise unsupported(instruction)
    compare = _compare(instruction, lowering, kind, name)
    if wanted == "f32":
        return lowering.assign(instruction, lambda registers: compare(registers).astype(F32))
    return lowering.assign(instruction, lambda registers: np.negative(compare(registers).astype(U32)))


def chosen(predicate: Value, yes: Value, no: Value, unsigned: np.dtype[Any]) -> Value:
    """``yes`` where the predicate holds, else ``no``; bit arithmetic is faster than ``np.where``."""
    if predicate.ndim == 0:
        return yes if predicate else no
    x, y = yes.view(unsigned), no.view(unsigned)
    if unsigned is DTYPES["pred"]:
        return np.where(predicate, x, y)
    return np.bitwise_xor(y, np.bitwise_and(np.bitwise_xor(x, y), np.negative(predicate.astype(unsigned))))


@opcode("selp", forms="b/u/s/f 16–64")
def _selp(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    a, b, p = lowering.sources(instruction, (kind, kind, "pred"))
    selector = instruction.operands[3]
    negated = isinstance(selector, Register) and selector.negated
    unsigned = unsigned_of(kind)

    def compute(registers: list[Value]) -> Value:
        predicate = np.logical_not(registers[p]) if negated else registers[p]
        return chosen(predicate, registers[a], registers[b], unsigned)

    return lowering.assign(instruction, compute)


@opcode("slct", forms="b/u/s/f 16–64 by s32 or f32")
def _slct(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    kind, by = modifiers.types(2)
    modifiers.skip("ftz")
    modifiers.done()
    a, b, c = lowering.sources(instruction, (kind, kind, by))
    unsigned, dtype = unsigned_of(kind), DTYPES[by]
    return lowering.assign(
        instruction,
        lambda registers: chosen(registers[c].view(dtype) >= 0, registers[a], registers[b], unsigned),
    )


# -- cvt ------------------------------------------------------------------------------------------------------
_TO_INTEGER = ("rni", "rzi", "rmi", "rpi")
_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
_WIDEN: dict[str, Function] = {
    "f16": lambda bits: formats.half_to_single(bits), "bf16": formats.bfloat_to_single,
    "f32": lambda x: x, "f64": lambda x: x,
}  # fmt: skip


@opcode("cvt", forms="integers, f16, bf16, f32, f64, tf32, f16x2/bf16x2 from f32; all roundings, ftz, sat, relu")
def _cvt(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    wanted, kind = modifiers.types(2)
    whole = modifiers.one(*_TO_INTEGER)
    mode = modifiers.one("rn", "rz", "rm", "rp", "rna", default="rn")
    flush, clamp, rectified = modifiers.flag("ftz"), modifiers.flag("sat"), modifiers.flag("relu")
    modifiers.skip("satfinite") if wanted == "tf32" else None
    modifiers.done()
    if wanted in {"f16x2", "bf16x2"}:
        return _cvt_pair(instruction, lowering, wanted.removesuffix("x2"), mode, rectified=rectified)
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


def _cvt_pair(instruction: Instruction, lowering: Lowering, half: str, mode: str, *, rectified: bool) -> Operation:
    """``d = {a, b}``: the first operand goes to the upper half."""
    a, b = lowering.sources(instruction, ("f32", "f32"))
    if mode not in {"rn", "rz"}:
        raise unsupported(instruction)
    nearest = formats.single_to_half if half == "f16" else formats.single_to_bfloat

    def narrow(x: Value) -> Value:
        if rectified:
            x = np.maximum(x, np.float32(0))
        return nearest(x) if mode == "rn" else _half_toward_zero(x, half)

    def compute(registers: list[Value]) -> Value:
        high, low = narrow(registers[a].view(F32)), narrow(registers[b].view(F32))
        return (high.astype(U32) << np.uint32(16)) | low.astype(U32)

    return lowering.assign(instruction, compute)


def _tf32(mode: str, instruction: Instruction) -> Function:
    """TensorFloat-32: 10 fraction bits, ties away (rna), to even (rn) or towards zero (rz)."""
    if mode not in {"rn", "rna", "rz"}:
        raise unsupported(instruction)
    kept = np.uint32(0xFFFFE000)

    def function(bits: Value) -> Value:
        if mode == "rz":
            return bits & kept
        half = np.uint32(0x1000) if mode == "rna" else np.uint32(0x0FFF) + ((bits >> np.uint32(13)) & np.uint32(1))
        special = (bits & np.uint32(0x7F800000)) == np.uint32(0x7F800000)
        return np.where(special, bits, (bits + half) & kept)

    return function


__all__ = ["BOOL", "GENERIC_LOCAL", "GENERIC_SHARED", "WINDOWS", "chosen", "comparison"]
