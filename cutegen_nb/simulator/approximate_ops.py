"""Division, roots and transcendental functions (PTX ISA, "Floating Point Instructions").

Rounded forms are rounded once (``rounding``). Approximate forms give the exact result cut to the documented
worst error (``formats.kept_bits``, ``formats.kept_absolute``): a simulator more exact than the hardware would
pass kernels that a GPU fails. What cutting leaves exact (powers of two, zeros) a GPU gives exactly too.
"""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator import formats, integer_ops, rounding
from cutegen_nb.simulator.faults import unsupported
from cutegen_nb.simulator.float_ops import arithmetic, count_flops
from cutegen_nb.simulator.integer_ops import INTEGERS
from cutegen_nb.simulator.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.ptx_model import Instruction
from cutegen_nb.simulator.values import F64, Function, Value

_SMALLEST_DOUBLE = np.float64(2.0**-1022)
_GROSS_NAN: np.float64 = np.uint64(0x7FFFFFFF00000000).view(np.float64)


# -- division ------------------------------------------------------------------------------------------------
def _limited_divide(x: Value, y: Value) -> Value:
    """``div.approx.f32``: 2 ulp for 2⁻¹²⁶ ≤ abs(y) ≤ 2¹²⁶ (PTX ISA, ``div``).

    Beyond, a zero of the quotient's sign, or NaN where ``x`` is infinite.
    """
    result = formats.kept_bits(x.astype(F64) / y.astype(F64), 22)
    beyond = np.isfinite(y) & (np.abs(y) > np.float32(2.0**126))
    if not beyond.any():
        return result
    zero = np.copysign(np.float32(0), result)
    lost = np.where(np.isinf(x) | np.isnan(x), formats.CANONICAL_NAN, zero)
    return np.where(beyond, lost, result)


def _two_ulp_divide(x: Value, y: Value) -> Value:
    """``div.full.f32``: 2 ulp over the whole range (PTX ISA, ``div``)."""
    return formats.kept_bits(x.astype(F64) / y.astype(F64), 22)


@opcode("div", forms="u/s16–64; f32 rn/rz/rm/rp, full, approx with ftz; f64 rn/rz/rm/rp")
def _div(instruction: Instruction, lowering: Lowering) -> Operation:
    if instruction.modifiers[-1] in INTEGERS:
        return integer_ops.integer_divide(instruction, lowering)
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    mode = modifiers.one(*rounding.MODES, "full", "approx", default="approx")
    flush = modifiers.flag("ftz")
    modifiers.done()
    count_flops(lowering, kind)
    if kind not in {"f32", "f64"} or (kind == "f64" and (flush or mode in {"full", "approx"})):
        raise unsupported(instruction)
    functions: dict[str, Function] = {"rn": np.divide, "full": _two_ulp_divide, "approx": _limited_divide}
    function = functions.get(mode) or (rounding.single if kind == "f32" else rounding.double)("div", mode)
    return arithmetic(instruction, lowering, kind, function, flush=flush, clamp=False)


@opcode("rem", forms="u/s16–64")
def _rem(instruction: Instruction, lowering: Lowering) -> Operation:
    return integer_ops.integer_divide(instruction, lowering)


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
        return _gross(_EXACT[name])
    if name != "rsqrt":
        raise unsupported(instruction)
    return lambda x: np.float64(1) / np.sqrt(x)  # emulated in software on a GPU: no bound is documented


_EXACT: dict[str, Function] = {
    "rcp": lambda x: np.float64(1) / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: np.float64(1) / np.sqrt(x),
}


def _approximate_root(name: str) -> Function:
    """``rcp.approx`` and ``sqrt.approx``: 1 ulp, relative 2⁻²³; ``rsqrt.approx``: relative 2⁻²²·⁹ (PTX ISA).

    Cut to 23 fraction bits: below one ulp, below 2⁻²³.
    """
    exact = _EXACT[name]
    return lambda x: formats.kept_bits(exact(x.astype(F64)), 23)


_APPROXIMATE_ROOTS: dict[str, Function] = {name: _approximate_root(name) for name in _EXACT}


def _gross(exact: Function) -> Function:
    """``rcp.approx.ftz.f64`` and ``rsqrt.approx.ftz.f64`` (PTX ISA, under those names).

    The upper 32 bits of the operand are read and those of the result written, the lower ones are zero;
    subnormal operands and results are zeros of their sign, NaN is 0x7FFFFFFF00000000.
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
    """2 to the x. Documented: 2 ulp, relative error at most 2⁻²² (PTX ISA, ``ex2``); 22 fraction bits."""
    return formats.kept_bits(np.exp2(x.astype(F64)), 22)


def _ex2_half(x: Value) -> Value:
    """f16: relative error at most 2⁻⁹·⁹ (PTX ISA, ``ex2``, "Half Precision"); cut to 10 fraction bits."""
    return formats.kept_bits(np.exp2(x.astype(F64)), 10)


def _ex2_bfloat(x: Value) -> Value:
    """bf16: relative error at most 2⁻⁷ (PTX ISA, ``ex2``, "Half Precision"); cut to 7 fraction bits."""
    return formats.kept_bits(np.exp2(x.astype(F64)), 7)


def lg2(x: Value) -> Value:
    """Binary logarithm. Documented: absolute error 2⁻²² on (0.5, 2), relative 2⁻²² elsewhere."""
    exact = np.log2(x.astype(F64))
    return np.where(np.abs(exact) < 1, formats.kept_absolute(exact, 22), formats.kept_bits(exact, 22))


def _circular(ufunc: Function) -> Function:
    """Sine and cosine: absolute error 2⁻²⁰·⁵ within ±2π, 2⁻¹⁴·⁷ within ±100π (PTX ISA); beyond, the same."""

    def function(x: Value) -> Value:
        exact = ufunc(x.astype(F64))
        near = np.abs(x) <= np.float32(2 * np.pi)
        fine = formats.kept_absolute(exact, 21)
        return fine if near.all() else np.where(near, fine, formats.kept_absolute(exact, 15))

    return function


def tanh(x: Value) -> Value:
    """Hyperbolic tangent. Documented: relative error 2⁻¹¹ (PTX ISA, ``tanh``); cut to 11 fraction bits."""
    return formats.kept_bits(np.tanh(x.astype(F64)), 11)


def _tanh_half(x: Value) -> Value:
    """f16: absolute error at most 2⁻¹⁰·⁹⁸⁷ (PTX ISA, ``tanh``, "Half Precision"); multiples of 2⁻¹¹."""
    return formats.kept_absolute(np.tanh(x.astype(F64)), 11)


def _tanh_bfloat(x: Value) -> Value:
    """bf16: absolute error at most 2⁻⁸ (PTX ISA, ``tanh``, "Half Precision"); multiples of 2⁻⁸."""
    return formats.kept_absolute(np.tanh(x.astype(F64)), 8)


_APPROXIMATE: dict[tuple[str, str], Function] = {
    ("ex2", "f32"): ex2, ("ex2", "f16"): _ex2_half, ("ex2", "bf16"): _ex2_bfloat,
    ("lg2", "f32"): lg2, ("sin", "f32"): _circular(np.sin), ("cos", "f32"): _circular(np.cos),
    ("tanh", "f32"): tanh, ("tanh", "f16"): _tanh_half, ("tanh", "bf16"): _tanh_bfloat,
}  # fmt: skip
"""Function by opcode and type; each takes and gives float32."""
__all__ = ["ex2", "lg2", "tanh"]
