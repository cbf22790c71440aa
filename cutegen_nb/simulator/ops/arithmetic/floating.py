"""Floating-point arithmetic (PTX ISA, "Floating Point Instructions", "Half Precision Floating Point")."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_nb.simulator.numbers import formats, rounding
from cutegen_nb.simulator.numbers.values import DTYPES, F32, U32, U64, Function, Value
from cutegen_nb.simulator.ops.arithmetic import integer, mixed
from cutegen_nb.simulator.ops.arithmetic.integer import INTEGERS, compute1, compute2, compute3
from cutegen_nb.simulator.ops.lowering import Compute, Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Instruction

U16 = formats.U16
_WIDEN: dict[str, Function] = {"f16": formats.half_to_single, "bf16": formats.bfloat_to_single}
_NARROW: dict[str, Function] = {"f16": formats.single_to_half, "bf16": formats.single_to_bfloat}
_ARITY = {
    "add": 2, "sub": 2, "mul": 2, "div": 2, "min": 2, "max": 2, "fma": 3, "mad": 3,
}  # fmt: skip
"""Number of source operands by opcode; 1 for all others."""
_SMALLEST_HALF = np.float32(2.0**-14)
"""Smallest normal float16."""
_SIGN, _MAGNITUDE = np.uint16(0x8000), np.uint16(0x7FFF)
"""Bits of the sign and of the magnitude of f16 and bf16."""
_PACKED_PARTS = 2


def count_flops(lowering: Lowering, kind: str, each: int = 1) -> None:
    """Set the FLOPs of the instruction being lowered: ``each`` a thread, twice that for packed types."""
    packed = kind.endswith("x2")
    lowering.tally.flop_kind = f"cuda.{kind.removesuffix('x2')}"
    lowering.tally.flops_each = each * (_PACKED_PARTS if packed else 1)


def arithmetic(  # noqa: PLR0913 - one call says all that a float instruction is
    instruction: Instruction, lowering: Lowering, kind: str, function: Function, *, flush: bool, clamp: bool
) -> Operation:
    """Operation of a float function of one to three operands of one type.

    ``function`` takes float64 for f64 and float32 for everything else. f16 and bf16 are widened, and the
    result is rounded. NaN becomes the canonical one in f32, f16 and bf16. f64 keeps payloads, as the host's
    processor does.
    """
    count = len(instruction.operands) - 1
    if count != _ARITY.get(instruction.opcode, 1):
        raise unsupported(instruction, f"{count} source operands")
    slots = lowering.sources(instruction, (kind,) * count)
    if kind in {"f32", "f64"}:
        return lowering.assign(
            instruction, _direct(_wrapped(function, kind, flush=flush, clamp=clamp), DTYPES[kind], slots)
        )
    half = kind.removesuffix("x2")
    if half not in _WIDEN:
        return _pair_of_singles(instruction, lowering, kind, function, slots)
    widen, narrow = _WIDEN[half], _NARROW[half]

    settle = _flusher(half) if flush else _same
    finish = _bit_flusher(half) if flush else _same

    def on_bits(*bits: Value) -> Value:
        # One operation in float32 and one rounding: see ``formats`` for why that is harmless.
        result = function(*(settle(widen(one)) for one in bits))
        return finish(narrow(formats.saturated(result) if clamp else result))

    if kind == half:
        return lowering.assign(instruction, _direct(on_bits, U16, slots))
    return lowering.assign(
        instruction, lambda registers: formats.paired(on_bits, *(registers[slot] for slot in slots))
    )


def _same(x: Value) -> Value:
    return x


def _flusher(half: str) -> Function:
    """Function that replaces f16 or bf16 subnormals, held as float32 or float64, by zeros of their sign."""
    smallest = _SMALLEST_HALF if half == "f16" else np.float32(2.0**-126)

    def flush(x: Value) -> Value:
        return np.where(np.abs(x) < smallest, np.copysign(x.dtype.type(0), x), x)

    return flush


def _bit_flusher(half: str) -> Function:
    """Function that replaces subnormals by zeros in f16 or bf16 bits, which is after rounding of a result."""
    smallest = np.uint16(0x0400 if half == "f16" else 0x0080)  # exponent field 1, fraction 0

    def flush(bits: Value) -> Value:
        return np.where((bits & _MAGNITUDE) < smallest, bits & _SIGN, bits)

    return flush


def _pair_of_singles(
    instruction: Instruction, lowering: Lowering, kind: str, function: Function, slots: list[int]
) -> Operation:
    if kind != "f32x2":
        raise unsupported(instruction)

    def compute(registers: list[Value]) -> Value:
        # Two float32 in 64 bits, the low one first.
        wholes = [registers[slot].view(DTYPES["u64"]) for slot in slots]
        parts = [np.ascontiguousarray(one).view(F32).reshape((*one.shape, 2)) for one in wholes]
        return np.ascontiguousarray(function(*parts)).view(DTYPES["u64"])[..., 0]

    return lowering.assign(instruction, compute)


def _direct(function: Function, dtype: np.dtype[Any], slots: list[int]) -> Compute:
    if len(slots) == 1:
        return compute1(function, dtype, slots[0])
    if len(slots) == _PACKED_PARTS:
        return compute2(function, dtype, slots[0], slots[1])
    return compute3(function, dtype, slots[0], slots[1], slots[2])


def _wrapped(function: Function, kind: str, *, flush: bool, clamp: bool) -> Function:
    """``function`` with ``.ftz`` on operands and result, then ``.sat`` or the canonical NaN; not for f64."""
    if kind == "f64":
        return function
    if not flush and not clamp:
        return lambda *arguments: formats.canonical(function(*arguments))

    def run(*arguments: Value) -> Value:
        if flush:
            arguments = tuple(formats.flushed(one) for one in arguments)
        result = function(*arguments)
        if clamp:
            return formats.saturated(formats.flushed(result) if flush else result)  # NaN becomes +0
        return formats.canonical(formats.flushed(result) if flush else result)

    return run


# -- add, sub, mul, fma --------------------------------------------------------------------------------------
_UFUNCS: dict[str, Any] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


@opcode(
    "add",
    "sub",
    forms="u/s16–64, s16x2, u16x2 (.sat.s32, .cc); f16, bf16, x2, f32, f32x2, f64 with rn/rz/rm/rp, ftz, sat",
)
def _add(instruction: Instruction, lowering: Lowering) -> Operation:
    if instruction.modifiers[-1] in INTEGERS:
        return integer.integer_add(instruction, lowering)
    if mixed.is_mixed(instruction):
        return mixed.lower_mixed(instruction, lowering)
    return _simple(instruction, lowering)


@opcode("addc", "subc", forms="u/s32, u/s64, .cc")
def _addc(instruction: Instruction, lowering: Lowering) -> Operation:
    return integer.integer_add(instruction, lowering)


@opcode("mul", forms="u/s16–64 lo, hi, wide; floats as add")
def _mul(instruction: Instruction, lowering: Lowering) -> Operation:
    if instruction.modifiers[-1] in INTEGERS:
        return integer.integer_multiply(instruction, lowering)
    return _simple(instruction, lowering)


@opcode("mul24", "mad24", forms="u/s32 lo, hi; mad24.hi.sat.s32")
def _mul24(instruction: Instruction, lowering: Lowering) -> Operation:
    if instruction.opcode == "mad24":
        return integer.integer_mad24(instruction, lowering)
    return integer.integer_multiply(instruction, lowering)


def _simple(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    mode = modifiers.one("rn", "rz", "rm", "rp", default="rn")
    flush, clamp = modifiers.flag("ftz"), modifiers.flag("sat")
    modifiers.done()
    count_flops(lowering, kind)
    function: Function = _UFUNCS[instruction.opcode]
    if mode != "rn":
        if kind not in {"f32", "f64", "f32x2"}:
            raise unsupported(instruction, f"rounding .{mode} of {kind}")
        # NumPy rounds to nearest even; directed rounding needs the exact error.
        function = (rounding.double if kind == "f64" else rounding.single)(instruction.opcode, mode)
    if kind == "f64" and (flush or clamp):
        raise unsupported(instruction, "a modifier that f64 has not")
    return arithmetic(instruction, lowering, kind, function, flush=flush, clamp=clamp)


@opcode("fma", "mad", forms="mad u/s16–64 lo, hi, wide; fma f16, bf16, x2 (.relu), f32, f32x2, f64")
def _fma(instruction: Instruction, lowering: Lowering) -> Operation:
    if instruction.modifiers[-1] in INTEGERS:
        return integer.integer_mad(instruction, lowering)
    if mixed.is_mixed(instruction):
        return mixed.lower_mixed(instruction, lowering)
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    mode = modifiers.one("rn", "rz", "rm", "rp", default="rn")
    flush, clamp, rectified = modifiers.flag("ftz"), modifiers.flag("sat"), modifiers.flag("relu")
    modifiers.done()
    count_flops(lowering, kind, 2)  # a multiply and an add
    half = kind.removesuffix("x2")
    if half in _WIDEN:
        if mode != "rn":
            raise unsupported(instruction, f"rounding .{mode} of {kind}")
        finish = _finisher(clamp=clamp, rectified=rectified)
        return _half_fma(instruction, lowering, kind, finish)
    if rectified or (kind == "f64" and (flush or clamp)) or kind not in {"f32", "f64", "f32x2"}:
        raise unsupported(instruction)
    if kind == "f64":
        function: Function = rounding.multiply_add_double(mode)
    elif mode == "rn":
        function = rounding.multiply_add_single
    else:
        function = lambda x, y, z: rounding.toward(rounding.multiply_add_odd(x, y, z, mode), mode)  # noqa: E731 - one expression, as the two above are names
    return arithmetic(instruction, lowering, kind, function, flush=flush, clamp=clamp)


@opcode("madc", forms="u/s32, u/s64 lo, hi, .cc")
def _madc(instruction: Instruction, lowering: Lowering) -> Operation:
    return integer.integer_mad(instruction, lowering)


def _finisher(*, clamp: bool, rectified: bool) -> Function:
    """Function that ``.sat`` and ``.relu`` apply to the exact result before rounding."""

    def finish(result: Value) -> Value:
        if clamp:
            result = formats.saturated(result)
        if rectified:
            result = np.maximum(result, np.float64(0)) + np.float64(0)  # −0 becomes +0, NaN stays
        return result

    return finish


def _half_fma(instruction: Instruction, lowering: Lowering, kind: str, finish: Function) -> Operation:
    half = kind.removesuffix("x2")
    widen = _WIDEN[half]
    flush = "ftz" in instruction.modifiers
    settle, last = (_flusher(half), _bit_flusher(half)) if flush else (_same, _same)

    def on_bits(x: Value, y: Value, z: Value) -> Value:
        operands = (settle(widen(one)) for one in (x, y, z))
        # Rounded to odd in float64 first, so that rounding to the half type is the only one that shows.
        return last(rounding.narrow_bits(finish(rounding.multiply_add_odd(*operands)), half, "rn"))

    a, b, c = lowering.sources(instruction, (kind, kind, kind))
    if kind == half:
        return lowering.assign(instruction, compute3(on_bits, U16, a, b, c))
    return lowering.assign(
        instruction, lambda registers: formats.paired(on_bits, registers[a], registers[b], registers[c])
    )


# -- min, max, abs, neg, copysign ----------------------------------------------------------------------------
_EXTREMES: dict[tuple[bool, bool], Any] = {
    (True, True): np.minimum,
    (True, False): np.fmin,
    (False, True): np.maximum,
    (False, False): np.fmax,
}
"""Ufunc by (minimum, ``.NaN``): with ``.NaN`` a NaN is the result, else the other operand is."""


@opcode(
    "min", "max", forms="u/s16–64, s16x2, u16x2 (.relu); f16, bf16, x2, f32 with ftz, NaN, xorsign.abs; f64"
)
def _extreme(instruction: Instruction, lowering: Lowering) -> Operation:
    """Minimum or maximum: −0 is less than +0, and NaN loses without ``.NaN`` (PTX ISA, ``min``, ``max``)."""
    if instruction.modifiers[-1] in INTEGERS:
        return integer.integer_extreme(instruction, lowering)
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    flush, propagates = modifiers.flag("ftz"), modifiers.flag("NaN")
    crossed = modifiers.flag("xorsign") and modifiers.flag("abs")
    modifiers.done()
    if kind == "f64" and (flush or propagates or crossed):
        raise unsupported(instruction, "a modifier that f64 has not")
    count_flops(lowering, kind)
    function = _extreme_of(instruction.opcode == "min", propagates, U64 if kind == "f64" else U32)
    if crossed:
        plain = function

        def function(x: Value, y: Value) -> Value:
            # ``.xorsign.abs``: the extreme of the magnitudes, with the exclusive or of the signs.
            sign = (x.view(U32) ^ y.view(U32)) & np.uint32(0x80000000)
            found = plain(np.abs(x), np.abs(y))
            return np.where(np.isnan(found), found, (found.view(U32) | sign).view(F32))

    if len(instruction.operands) > 1 + _ARITY[instruction.opcode] and kind == "f32" and not crossed:
        return _of_three(instruction, lowering, function, flush=flush)
    return arithmetic(instruction, lowering, kind, function, flush=flush, clamp=False)


def _of_three(instruction: Instruction, lowering: Lowering, function: Function, *, flush: bool) -> Operation:
    """Operation of the extreme of three f32 operands."""
    slots = lowering.sources(instruction, ("f32",) * 3)
    lowering.tally.flops_each = 2
    both = _wrapped(lambda x, y, z: function(function(x, y), z), "f32", flush=flush, clamp=False)
    return lowering.assign(instruction, _direct(both, F32, slots))


def _extreme_of(least: bool, propagates: bool, unsigned: np.dtype[Any]) -> Function:  # noqa: FBT001 - a pair
    ufunc = _EXTREMES[least, propagates]
    joined = np.bitwise_or if least else np.bitwise_and

    def function(x: Value, y: Value) -> Value:
        found = ufunc(x, y)
        if y.ndim == 0 and y == 0 and not least and not np.signbit(y):
            return found + y  # max(x, +0): only −0 can be wrong, and −0 + 0 is +0
        zeros = found == 0
        if not zeros.any():
            return found
        zeros = zeros & (x == y)
        # Equal zeros may differ in sign: or of the signs for the minimum, and for the maximum.
        return np.where(zeros, joined(x.view(unsigned), y.view(unsigned)).view(found.dtype), found)

    return function


@opcode("abs", "neg", forms="s16–64; f16, bf16, x2, f32, f64 with ftz")
def _sign(instruction: Instruction, lowering: Lowering) -> Operation:
    if instruction.modifiers[-1] in INTEGERS:
        return integer.integer_sign(instruction, lowering)
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    flush = modifiers.flag("ftz")
    modifiers.done()
    if kind == "f64" and flush:
        raise unsupported(instruction, "a modifier that f64 has not")
    if kind in {"f32", "f64"}:
        ufunc = np.abs if instruction.opcode == "abs" else np.negative
        return arithmetic(instruction, lowering, kind, ufunc, flush=flush, clamp=False)
    (a,) = lowering.sources(instruction, (kind,))

    half = kind.removesuffix("x2")
    if half not in _WIDEN:
        raise unsupported(instruction)

    infinity = np.uint16(0x7C00 if half == "f16" else 0x7F80)  # greater magnitudes are NaN
    settle = _bit_flusher(half) if flush else _same

    def on_bits(x: Value) -> Value:
        x = settle(x)
        result = x & _MAGNITUDE if instruction.opcode == "abs" else x ^ _SIGN
        return np.where((x & _MAGNITUDE) > infinity, _MAGNITUDE, result)

    if kind.endswith("x2"):
        return lowering.assign(instruction, lambda registers: formats.paired(on_bits, registers[a]))
    return lowering.assign(instruction, compute1(on_bits, U16, a))


@opcode("copysign", forms="f32, f64")
def _copysign(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    if kind not in {"f32", "f64"}:
        raise unsupported(instruction)
    a, b = lowering.sources(instruction, (kind, kind))
    # The sign of a with the magnitude of b (PTX ISA, ``copysign``).
    return lowering.assign(
        instruction, compute2(lambda sign, magnitude: np.copysign(magnitude, sign), DTYPES[kind], a, b)
    )


@opcode("testp", forms="finite, infinite, number, notanumber, normal, subnormal; f32, f64")
def _test(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    what = modifiers.one("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    modifiers.done()
    if kind not in {"f32", "f64"} or not what:
        raise unsupported(instruction)
    (a,) = lowering.sources(instruction, (kind,))
    tiny = np.finfo(DTYPES[kind]).tiny
    tests: dict[str, Function] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda x: ~np.isnan(x),
        "notanumber": np.isnan,
        "normal": lambda x: np.isfinite(x) & ((np.abs(x) >= tiny) | (x == 0)),  # zeros count as normal
        "subnormal": lambda x: (np.abs(x) < tiny) & (x != 0),
    }
    return lowering.assign(instruction, compute1(tests[what], DTYPES[kind], a))
