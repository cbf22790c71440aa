"""Division, roots and transcendental functions (PTX ISA, "Floating Point Instructions").

Rounded forms are rounded once (``rounding``). Approximate forms truncate the exact result to the documented
worst error (``formats.truncate_to_fraction_bits`` and ``truncate_to_multiple``). A simulator more exact than
the hardware would pass kernels that a GPU fails. A GPU too is exact where truncation is (powers of two,
zeros).
"""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.numbers import formats, rounding
from cutegen_nb.simulator.numbers.values import F64, Function, Value
from cutegen_nb.simulator.ops.arithmetic import integer
from cutegen_nb.simulator.ops.arithmetic.floating import arithmetic, count_flops
from cutegen_nb.simulator.ops.arithmetic.integer import INTEGERS
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Instruction

_SMALLEST_DOUBLE = np.float64(2.0**-1022)
"""Smallest normal float64."""
_GROSS_NAN: np.float64 = np.uint64(0x7FFFFFFF00000000).view(np.float64)
"""NaN that the ``.approx.ftz.f64`` instructions return (PTX ISA, ``rcp.approx.ftz.f64``)."""


# -- division ------------------------------------------------------------------------------------------------
def _limited_divide(x: Value, y: Value) -> Value:
    """``div.approx.f32``: error of 2 ulp for 2⁻¹²⁶ ≤ abs(y) ≤ 2¹²⁶ (PTX ISA, ``div``).

    For larger ``y`` the result is a zero of the quotient's sign, or NaN where ``x`` is infinite.
    """
    # 22 of 23 fraction bits are kept, so the quotient is less than 2 ulp off.
    result = formats.truncate_to_fraction_bits(x.astype(F64) / y.astype(F64), 22)
    beyond = np.isfinite(y) & (np.abs(y) > np.float32(2.0**126))
    if not beyond.any():
        return result
    zero = np.copysign(np.float32(0), result)
    lost = np.where(np.isinf(x) | np.isnan(x), formats.CANONICAL_NAN, zero)
    return np.where(beyond, lost, result)


def _two_ulp_divide(x: Value, y: Value) -> Value:
    """``div.full.f32``: error of 2 ulp over the whole range (PTX ISA, ``div``)."""
    return formats.truncate_to_fraction_bits(x.astype(F64) / y.astype(F64), 22)


@opcode("div", forms="u/s16–64; f32 rn/rz/rm/rp, full, approx with ftz; f64 rn/rz/rm/rp")
def _div(instruction: Instruction, lowering: Lowering) -> Operation:
    if instruction.modifiers[-1] in INTEGERS:
        return integer.integer_divide(instruction, lowering)
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    mode = modifiers.one(*rounding.MODES, "full", "approx", default="approx")
    flush = modifiers.flag("ftz")
    modifiers.done()
    count_flops(lowering, kind)
    if kind not in {"f32", "f64"} or (kind == "f64" and (flush or mode in {"full", "approx"})):
        raise unsupported(instruction)
    # np.divide rounds to nearest even in float32 and float64 already.
    functions: dict[str, Function] = {"rn": np.divide, "full": _two_ulp_divide, "approx": _limited_divide}
    function = functions.get(mode) or (rounding.single if kind == "f32" else rounding.double)("div", mode)
    return arithmetic(instruction, lowering, kind, function, flush=flush, clamp=False)


@opcode("rem", forms="u/s16–64")
def _rem(instruction: Instruction, lowering: Lowering) -> Operation:
    return integer.integer_divide(instruction, lowering)


# -- reciprocals and roots -----------------------------------------------------------------------------------
@opcode(
    "rcp", "sqrt", "rsqrt",
    forms="f32 approx; rcp and sqrt f32, f64 rn/rz/rm/rp, ftz; rcp.approx.ftz.f64, rsqrt.approx(.ftz).f64",
)  # fmt: skip
def _root(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    mode = modifiers.one(*rounding.MODES, "approx")
    flush = modifiers.flag("ftz")
    modifiers.done()
    count_flops(lowering, kind)
    name = instruction.opcode
    known = kind in {"f32", "f64"} and bool(mode) and (name != "rsqrt" or mode == "approx")
    if not known:
        raise unsupported(instruction)
    if kind == "f64":
        return arithmetic(instruction, lowering, kind, _double_root(instruction, mode, flush=flush),
                          flush=False, clamp=False)  # fmt: skip
    function = _APPROXIMATE_ROOTS[name] if mode == "approx" else rounding.single(name, mode)
    return arithmetic(instruction, lowering, kind, function, flush=flush, clamp=False)


def _double_root(instruction: Instruction, mode: str, *, flush: bool) -> Function:
    name = instruction.opcode
    if mode != "approx":
        if flush:
            raise unsupported(instruction, "a modifier that f64 has not")
        return rounding.double(name, mode)
    if flush and name != "sqrt":
        return _upper_half_only(_EXACT[name])
    if name != "rsqrt":
        raise unsupported(instruction)
    return lambda x: np.float64(1) / np.sqrt(x)  # emulated in software on a GPU: no bound is documented


_EXACT: dict[str, Function] = {
    "rcp": lambda x: np.float64(1) / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: np.float64(1) / np.sqrt(x),
}
"""Float64 function by opcode, the reference that approximate forms truncate."""


def _approximate_root(name: str) -> Function:
    """``rcp.approx`` and ``sqrt.approx``: 1 ulp, relative 2⁻²³; ``rsqrt.approx``: relative 2⁻²²·⁹ (PTX ISA).

    Truncating to 23 fraction bits makes an error below one ulp and below 2⁻²³.
    """
    exact = _EXACT[name]
    return lambda x: formats.truncate_to_fraction_bits(exact(x.astype(F64)), 23)


_APPROXIMATE_ROOTS: dict[str, Function] = {name: _approximate_root(name) for name in _EXACT}


def _upper_half_only(exact: Function) -> Function:
    """Function of ``rcp.approx.ftz.f64`` and ``rsqrt.approx.ftz.f64`` (PTX ISA, under those names).

    Only the upper 32 bits of operand and result count; the lower ones are zero. Subnormal operands and
    results become zeros of their sign. NaN becomes 0x7FFFFFFF00000000.
    """

    def upper(x: Value) -> Value:
        cut = (x.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(F64)
        return np.where(np.abs(x) < _SMALLEST_DOUBLE, np.copysign(np.float64(0), x), cut)

    def function(x: Value) -> Value:
        result = upper(exact(upper(x)))
        return np.where(np.isnan(result), _GROSS_NAN, result)

    return function


# -- transcendental functions --------------------------------------------------------------------------------
@opcode("ex2", "lg2", "sin", "cos", "tanh", forms="f32 approx(.ftz); ex2 and tanh also f16, bf16, x2")
def _approximate(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    flush = modifiers.flag("ftz")
    if not modifiers.flag("approx"):
        raise unsupported(instruction)
    modifiers.done()
    function = _APPROXIMATE.get((instruction.opcode, kind.removesuffix("x2")))
    if function is None or kind == "f32x2":
        raise unsupported(instruction)
    count_flops(lowering, kind)
    return arithmetic(instruction, lowering, kind, function, flush=flush, clamp=False)


def ex2(x: Value) -> Value:
    """2 to the x, cut to 22 fraction bits; documented error: 2 ulp, relative 2⁻²² (PTX ISA, ``ex2``)."""
    return formats.truncate_to_fraction_bits(np.exp2(x.astype(F64)), 22)


def _ex2_half(x: Value) -> Value:
    """f16: relative error at most 2⁻⁹·⁹ (PTX ISA, ``ex2``, "Half Precision"); cut to 10 fraction bits."""
    return formats.truncate_to_fraction_bits(np.exp2(x.astype(F64)), 10)


def _ex2_bfloat(x: Value) -> Value:
    """bf16: relative error at most 2⁻⁷ (PTX ISA, ``ex2``, "Half Precision"); cut to 7 fraction bits."""
    return formats.truncate_to_fraction_bits(np.exp2(x.astype(F64)), 7)


def lg2(x: Value) -> Value:
    """Binary logarithm; documented error: absolute 2⁻²² on (0.5, 2), relative 2⁻²² elsewhere (PTX ISA)."""
    exact = np.log2(x.astype(F64))
    # abs(log2(x)) < 1 is the interval 0.5 < x < 2.
    return np.where(
        np.abs(exact) < 1,
        formats.truncate_to_multiple(exact, 22),
        formats.truncate_to_fraction_bits(exact, 22),
    )


def _circular(ufunc: Function) -> Function:
    """Sine or cosine: absolute error 2⁻²⁰·⁵ within ±2π, 2⁻¹⁴·⁷ within ±100π (PTX ISA, ``sin``, ``cos``).

    Beyond ±100π the PTX ISA gives no bound; the error of ±100π is used.
    """

    def function(x: Value) -> Value:
        exact = ufunc(x.astype(F64))
        near = np.abs(x) <= np.float32(2 * np.pi)
        fine = formats.truncate_to_multiple(exact, 21)  # the next whole bits within the bounds: 2⁻²¹ and 2⁻¹⁵
        return fine if near.all() else np.where(near, fine, formats.truncate_to_multiple(exact, 15))

    return function


def tanh(x: Value) -> Value:
    """Hyperbolic tangent, cut to 11 fraction bits; documented relative error: 2⁻¹¹ (PTX ISA, ``tanh``)."""
    return formats.truncate_to_fraction_bits(np.tanh(x.astype(F64)), 11)


def _tanh_half(x: Value) -> Value:
    """f16: absolute error at most 2⁻¹⁰·⁹⁸⁷ (PTX ISA, ``tanh``, "Half Precision"); multiples of 2⁻¹¹."""
    return formats.truncate_to_multiple(np.tanh(x.astype(F64)), 11)


def _tanh_bfloat(x: Value) -> Value:
    """bf16: absolute error at most 2⁻⁸ (PTX ISA, ``tanh``, "Half Precision"); multiples of 2⁻⁸."""
    return formats.truncate_to_multiple(np.tanh(x.astype(F64)), 8)


_APPROXIMATE: dict[tuple[str, str], Function] = {
    ("ex2", "f32"): ex2, ("ex2", "f16"): _ex2_half, ("ex2", "bf16"): _ex2_bfloat,
    ("lg2", "f32"): lg2, ("sin", "f32"): _circular(np.sin), ("cos", "f32"): _circular(np.cos),
    ("tanh", "f32"): tanh, ("tanh", "f16"): _tanh_half, ("tanh", "bf16"): _tanh_bfloat,
}  # fmt: skip
"""Function by opcode and type; each takes and returns float32."""
__all__ = ["ex2", "lg2", "tanh"]
