"""Division, roots and transcendental functions (PTX ISA, "Floating Point Instructions").

Correctly rounded forms are computed in float64 and rounded once. Approximate forms give the exact result cut
to the documented error (``formats.kept_bits``, ``formats.kept_absolute``): a simulator more exact than the
hardware would pass kernels that a GPU fails.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutegen_nb.simulator import formats, integer_ops
from cutegen_nb.simulator.faults import unsupported
from cutegen_nb.simulator.float_ops import arithmetic, count_flops
from cutegen_nb.simulator.integer_ops import INTEGERS
from cutegen_nb.simulator.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.ptx_model import Instruction
from cutegen_nb.simulator.values import F32, F64, Value

Function = Callable[..., Value]


def _limited_divide(x: Value, y: Value) -> Value:
    """``div.approx.f32``: 2 ulp for 2⁻¹²⁶ ≤ abs(y) ≤ 2¹²⁶, zero beyond (PTX ISA, ``div``)."""
    result = formats.kept_bits(x.astype(F64) / y.astype(F64), 22)
    beyond = np.isfinite(y) & (np.abs(y) > np.float32(2.0**126)) & np.isfinite(x)
    return np.where(beyond, np.copysign(np.float32(0), result), result)


def _two_ulp_divide(x: Value, y: Value) -> Value:
    """``div.full.f32``: 2 ulp over the whole range."""
    return formats.kept_bits(x.astype(F64) / y.astype(F64), 22)


@opcode("div", forms="u/s16–64; f32 rn/rz/rm/rp, full, approx; f64 rn")
def _div(instruction: Instruction, lowering: Lowering) -> Operation:
    if instruction.modifiers[-1] in INTEGERS:
        return integer_ops.integer_divide(instruction, lowering)
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    mode = modifiers.one("rn", "rz", "rm", "rp", "full", "approx", default="approx")
    flush = modifiers.flag("ftz")
    modifiers.done()
    count_flops(lowering, kind)
    exact = mode == "rn"
    if not exact and kind != "f32":
        raise unsupported(instruction)
    functions: dict[str, Function] = {"rn": np.divide, "full": _two_ulp_divide, "approx": _limited_divide}
    function = functions.get(mode) or (lambda x, y: formats.toward(x.astype(F64) / y.astype(F64), mode))
    return arithmetic(instruction, lowering, kind, function, flush=flush, clamp=False)


@opcode("rem", forms="u/s16–64")
def _rem(instruction: Instruction, lowering: Lowering) -> Operation:
    return integer_ops.integer_divide(instruction, lowering)


@opcode("rcp", "sqrt", "rsqrt", forms="f32 approx, rn/rz/rm/rp; f64 rn; rcp/rsqrt.approx(.ftz).f64")
def _root(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    mode = modifiers.one("rn", "rz", "rm", "rp", "approx", default="approx")
    flush = modifiers.flag("ftz")
    modifiers.done()
    count_flops(lowering, kind)
    exact = _EXACT[instruction.opcode]
    if kind == "f64":
        # rsqrt.approx.f64 is one ulp; with .ftz only the upper 32 bits are read and written.
        function: Function = (lambda x: _upper_half(exact(_upper_half(x)))) if flush else exact
        if mode not in {"rn", "approx"}:
            raise unsupported(instruction)
        return arithmetic(instruction, lowering, kind, function, flush=False, clamp=False)
    if mode == "approx":
        # 1 ulp for rcp and sqrt, 2**-22.4 for rsqrt: cut to 23 bits is below one ulp for all three.
        function = lambda x: formats.kept_bits(exact(x.astype(F64)), 23)  # noqa: E731
    elif mode == "rn":
        function = lambda x: exact(x.astype(F64)).astype(F32)  # noqa: E731
    else:
        function = lambda x: formats.toward(exact(x.astype(F64)), mode)  # noqa: E731
    return arithmetic(instruction, lowering, kind, function, flush=flush, clamp=False)


_EXACT: dict[str, Function] = {
    "rcp": lambda x: np.float64(1) / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: np.float64(1) / np.sqrt(x),
}


def _upper_half(x: Value) -> Value:
    """float64 with the low 32 bits cleared: all that ``rcp.approx.ftz.f64`` reads and writes."""
    return (x.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(F64)


@opcode("ex2", "lg2", "sin", "cos", "tanh", forms="f32 approx(.ftz); ex2 and tanh also f16, bf16, x2")
def _approximate(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    flush = modifiers.flag("ftz")
    if not modifiers.flag("approx"):
        raise unsupported(instruction)
    modifiers.done()
    if kind != "f32" and instruction.opcode not in {"ex2", "tanh"}:
        raise unsupported(instruction)
    count_flops(lowering, kind)
    function = _APPROXIMATE[instruction.opcode]
    return arithmetic(instruction, lowering, kind, function, flush=flush, clamp=False)


def ex2(x: Value) -> Value:
    """2 to the x. Documented: relative error at most 2⁻²²; cut to 22 fraction bits."""
    return formats.kept_bits(np.exp2(x.astype(F64)), 22)


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
    """Hyperbolic tangent. Documented: relative error 2⁻¹¹; cut to 11 fraction bits."""
    return formats.kept_bits(np.tanh(x.astype(F64)), 11)


_APPROXIMATE: dict[str, Function] = {
    "ex2": ex2, "lg2": lg2, "sin": _circular(np.sin), "cos": _circular(np.cos), "tanh": tanh,
}  # fmt: skip
