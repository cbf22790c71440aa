"""Correct rounding of exact results in every direction (PTX ISA, "Rounding Modifiers": rn, rz, rm, rp).

Sums, products, quotients and roots are computed in float64 together with their exact error. Error-free
transforms give that error (Knuth's and Dekker's, in Muller et al., "Handbook of Floating-Point Arithmetic",
chapter 4). Rounding to odd (Boldo and Melquiond, 2008) keeps what float64 cannot hold visible to the final
rounding. Nothing here loops over threads.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutegen_nb.simulator.numbers.formats import (
    F16,
    SMALLEST_NORMAL,
    U16,
    bfloat_to_single,
    half_to_single,
    single_to_bfloat,
    single_to_half,
)
from cutegen_nb.simulator.numbers.values import F32, F64, S64, U32, U64, Value

MODES = ("rn", "rz", "rm", "rp")
"""Rounding modifiers: to nearest even, towards zero, down, up."""
_SPLITTER = np.float64(134217729.0)
"""Veltkamp's constant 2**27 + 1, which splits a float64 into two parts of at most 26 bits each."""
_LEAST_RELATIVE_EXPONENT = -300
"""Least exponent of a term of a fused multiply-add, relative to the largest term.

A smaller term only decides the direction of rounding, so its exponent is raised to this one.
"""
_LOWEST = -1080
"""Least exponent that :func:`assembled` uses: below it every result is less than half the least float64."""
_LEAST_EXPONENT, _LEAST_NORMAL = -1074, 2.0**-1022
"""Exponent of the least subnormal float64; the least normal float64."""
_TIE, _BELOW = np.uint64(0x10000000), np.uint64(0x1FFFFFFF)
"""Pattern of a midpoint of two float32 in the 29 fraction bits that float64 has more, and their mask."""


def two_sum(x: Value, y: Value) -> tuple[Value, Value]:
    """``x + y`` rounded to nearest, and its exact error (Knuth's TwoSum)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def two_product(x: Value, y: Value) -> tuple[Value, Value]:
    """``x × y`` rounded to nearest, and its error (Dekker's product); both factors must lie near one."""
    product = x * y
    # Each factor splits into a high and a low half, whose partial products are exact (Veltkamp).
    xh = x * _SPLITTER
    xh = xh - (xh - x)
    yh = y * _SPLITTER
    yh = yh - (yh - y)
    xl, yl = x - xh, y - yh
    return product, ((xh * yh - product) + xh * yl + xl * yh) + xl * yl


def sum_to_odd(x: Value, y: Value, mode: str = "rn") -> Value:
    """``x + y`` of float64, rounded to odd: an inexact sum becomes the neighbour whose last bit is one.

    An exact zero of addends of different signs is −0 in mode rm and +0 in all others (IEEE 754, 6.3).
    """
    total, rest = two_sum(x, y)
    if mode == "rm":
        negative = (total == 0) & (np.signbit(x) | np.signbit(y))
        total = np.where(negative, np.float64(-0.0), total)
    inexact = (rest != 0) & np.isfinite(total)
    if not inexact.any():
        return total
    bits = total.view(S64)
    # An odd nearest result stays. An even one moves by one place towards the exact sum: bit patterns grow
    # with the magnitude, so the step is +1 where error and total have one sign.
    even = inexact & (bits & np.int64(1) == 0)
    step = np.where((rest > 0) == (total > 0), np.int64(1), np.int64(-1))
    return np.where(even, bits + step, bits).view(F64)


# -- narrowing -----------------------------------------------------------------------------------------------
def round_to_odd(x: Value) -> Value:
    """Round float64 to float32, to odd: an inexact result becomes the neighbour whose last bit is one."""
    below = toward(x, "rz")
    inexact = below.astype(F64) != x
    # The exact number lies between ``below`` and the next float32 away from zero: one of the two is odd.
    return (below.view(U32) | (inexact & np.isfinite(below)).astype(U32)).view(F32)


def double_to_bfloat(x: Value) -> Value:
    """Round float64 to bfloat16 bits, to nearest even with one rounding."""
    return single_to_bfloat(round_to_odd(x))


_NEAREST: dict[str, Callable[[Value], Value]] = {
    "f32": lambda x: x.astype(F32).view(U32),
    "f16": lambda x: x.astype(F16).view(U16),
    "bf16": double_to_bfloat,
}
"""Function from float64 to bits of a type, rounded once to nearest even."""
_WIDEN: dict[str, Callable[[Value], Value]] = {
    "f32": lambda bits: bits.view(F32), "f16": half_to_single, "bf16": bfloat_to_single,
}  # fmt: skip
"""Function from bits of a type to float32, exact."""


def narrow_bits(x: Value, kind: str, mode: str) -> Value:
    """Round float64 once to the bits of f32, f16 or bf16 in direction ``mode``.

    NaN becomes PTX's canonical one: 0x7FFFFFFF for f32, 0x7FFF for f16 and bf16.
    """
    if mode == "rn" and kind == "f16":
        return single_to_half(x)
    bits = _NEAREST[kind](x)
    unsigned = bits.dtype
    if mode != "rn":
        # The nearest result is at most one place off. Where it lies on the wrong side, it moves back by one
        # bit pattern, and so from infinity to the greatest finite number.
        back = _WIDEN[kind](bits).astype(F64)
        negative = np.signbit(back)
        if mode == "rz":
            step = np.where(np.abs(back) > np.abs(x), -1, 0)
        elif mode == "rm":
            step = np.where(back > x, np.where(negative, 1, -1), 0)
        else:
            step = np.where(back < x, np.where(negative, -1, 1), 0)
        bits = bits + step.astype(unsigned)  # −1 wraps around, which subtracts one
    nan = np.isnan(x)
    if nan.any():
        bits = np.where(nan, unsigned.type(0x7FFFFFFF if kind == "f32" else 0x7FFF), bits)
    return bits


def toward(x: Value, mode: str) -> Value:
    """Round float64 once to float32 in direction ``mode``."""
    return narrow_bits(x, "f32", mode).view(F32)


# -- float32 -------------------------------------------------------------------------------------------------
def single(name: str, mode: str) -> Callable[..., Value]:
    """Function of float32 operands: add, sub, mul, div, sqrt or rcp, rounded once in direction ``mode``.

    Quotients and roots are rounded to float64 first, which is harmless: float64 has
    more than 2 × 24 + 2 bits. A rounded one lands on a float32, or on a midpoint of two, only if the exact
    one does.
    """
    if name in {"add", "sub"}:
        sign = np.float64(1 if name == "add" else -1)
        return lambda x, y: toward(sum_to_odd(x.astype(F64), sign * y.astype(F64), mode), mode)
    functions: dict[str, Callable[..., Value]] = {
        "mul": lambda x, y: x.astype(F64) * y.astype(F64),  # exact
        "div": lambda x, y: x.astype(F64) / y.astype(F64),
        "sqrt": lambda x: np.sqrt(x.astype(F64)),
        "rcp": lambda x: np.float64(1) / x.astype(F64),
    }
    wide = functions[name]
    return lambda *operands: toward(wide(*operands), mode)


def multiply_add_single(x: Value, y: Value, z: Value) -> Value:
    """float32 ``x × y + z``, rounded once to nearest.

    The product is exact in float64 (48 of 53 bits). Its sum with ``z`` is rounded to float64 first. That
    changes the result only where the sum lands on a midpoint of float32, or where the result is subnormal.
    Those elements are computed again with rounding to odd.
    """
    wide = x.astype(F64)
    if wide.ndim and wide.shape == np.broadcast_shapes(y.shape, z.shape, wide.shape):
        np.multiply(wide, y, out=wide)  # in place, which saves an array of the size of the batch
        np.add(wide, z, out=wide)
    else:
        wide = wide * y.astype(F64) + z.astype(F64)
    result = wide.astype(F32)
    magnitude = np.abs(result)
    risky = (wide.view(U64) & _BELOW) == _TIE
    if np.fmin.reduce(magnitude, axis=None) < SMALLEST_NORMAL:  # passing over NaN
        risky = risky | ((magnitude < SMALLEST_NORMAL) & (wide != 0))
    if not risky.any():
        return result
    if not result.ndim:
        return sum_to_odd(x.astype(F64) * y.astype(F64), z.astype(F64)).astype(F32)
    places = np.unravel_index(np.flatnonzero(risky), result.shape)
    a, b, c = (np.broadcast_to(one, result.shape)[places].astype(F64) for one in (x, y, z))
    result[places] = sum_to_odd(a * b, c)
    return result


def multiply_add_odd(x: Value, y: Value, z: Value, mode: str = "rn") -> Value:
    """``x × y + z`` of float32 operands as float64 rounded to odd.

    Rounding the result to a narrower format, in any direction, gives the correctly rounded value.
    """
    return sum_to_odd(x.astype(F64) * y.astype(F64), z.astype(F64), mode)


# -- float64 -------------------------------------------------------------------------------------------------
def _settled(nearest: Value, rest: Value, mode: str) -> Value:
    """Turn a result to nearest into one rounded as ``mode``, by the sign of ``rest`` = exact − nearest."""
    if mode == "rn":
        return nearest
    if mode == "rz":
        away = np.where(np.signbit(nearest), rest > 0, rest < 0)
        return np.where(away, np.nextafter(nearest, np.float64(0)), nearest)
    if mode == "rm":
        return np.where(rest < 0, np.nextafter(nearest, np.float64(-np.inf)), nearest)
    return np.where(rest > 0, np.nextafter(nearest, np.float64(np.inf)), nearest)


def assembled(high: Value, low: Value, exponent: Value, mode: str) -> Value:
    """``(high + low) × 2**exponent`` as float64, rounded once, subnormal results included.

    ``high`` lies near one. ``low`` is at most half a unit in the last place of ``high``; only its sign need
    be right.
    """
    exponent = np.maximum(exponent, _LOWEST)
    result = np.ldexp(high, exponent)
    # An overflow to infinity exceeds the exact result, so its error has the opposite sign.
    rest = np.where(np.isinf(result), -result, low)
    # ldexp has rounded a subnormal result already, perhaps up to the least normal number.
    small = (np.abs(result) <= _LEAST_NORMAL) & (high != 0)
    if small.any():
        # ``big`` makes the unit in the last place of the sum that of the least float64, before scaling.
        unit = np.where(small, _LEAST_EXPONENT - exponent, 0)
        big = np.copysign(np.ldexp(np.float64(2.0**52), unit), high)
        first, left = two_sum(big, high)
        last, lost = two_sum(first, sum_to_odd(left, low))
        tiny = np.copysign(np.ldexp(last - big, exponent), high)
        result, rest = np.where(small, tiny, result), np.where(small, lost, rest)
    return _settled(result, rest, mode)


def _double_sum(x: Value, y: Value, mode: str) -> Value:
    """float64 ``x + y``, rounded once in direction ``mode``."""
    total, rest = two_sum(x, y)
    # A sum that overflows to infinity exceeds the exact one; infinite operands give no error.
    overflowed = np.isinf(total) & np.isfinite(x) & np.isfinite(y)
    rest = np.where(overflowed, -total, np.where(np.isfinite(total), rest, 0))
    if mode == "rm":
        total = np.where((total == 0) & (np.signbit(x) | np.signbit(y)), np.float64(-0.0), total)
    return _settled(total, rest, mode)


def _finite_nonzero(*operands: Value) -> Value:
    """True, element by element, if all operands are finite and nonzero; else float64 results are exact."""
    truth = np.isfinite(operands[0]) & (operands[0] != 0)
    for one in operands[1:]:
        truth = truth & np.isfinite(one) & (one != 0)
    return truth


def _double_product(x: Value, y: Value, mode: str) -> Value:
    # Mantissas near one cannot overflow or underflow; ``assembled`` puts the exponents back.
    (mx, ex), (my, ey) = np.frexp(x), np.frexp(y)
    high, low = two_product(mx, my)
    return np.where(_finite_nonzero(x, y), assembled(high, low, ex + ey, mode), x * y)


def _double_quotient(x: Value, y: Value, mode: str) -> Value:
    (mx, ex), (my, ey) = np.frexp(x), np.frexp(y)
    quotient = mx / my
    # Remainder of the division, exact: its sign is the sign of the error, whatever its size.
    high, low = two_product(quotient, my)
    rest = ((mx - high) - low) * np.sign(my)
    tiny = np.copysign(np.float64(2.0**-60), rest) * (rest != 0)
    return np.where(_finite_nonzero(x, y), assembled(quotient, tiny, ex - ey, mode), x / y)


def _double_root(x: Value, mode: str) -> Value:
    mantissa, exponent = np.frexp(x)
    odd = exponent & 1  # sqrt(m × 2**(2n)) = sqrt(m) × 2**n: the exponent has to be even
    mantissa, exponent = np.ldexp(mantissa, odd), exponent - odd
    root = np.sqrt(mantissa)
    high, low = two_product(root, root)
    return np.where(
        _finite_nonzero(x), assembled(root, (mantissa - high) - low, exponent // 2, mode), np.sqrt(x)
    )


def double(name: str, mode: str) -> Callable[..., Value]:
    """Function of float64 operands: add, sub, mul, div, sqrt or rcp, rounded once in direction ``mode``."""
    functions: dict[str, Callable[..., Value]] = {
        "add": lambda x, y: _double_sum(x, y, mode),
        "sub": lambda x, y: _double_sum(x, np.negative(y), mode),
        "mul": lambda x, y: _double_product(x, y, mode),
        "div": lambda x, y: _double_quotient(x, y, mode),
        "sqrt": lambda x: _double_root(x, mode),
        "rcp": lambda x: _double_quotient(np.float64(1), x, mode),
    }
    return functions[name]


def multiply_add_double(mode: str) -> Callable[[Value, Value, Value], Value]:
    """Function for float64 ``x × y + z``, rounded once as ``mode``, with no overflow or underflow between."""

    def function(x: Value, y: Value, z: Value) -> Value:
        (mx, ex), (my, ey), (mz, ez) = np.frexp(x), np.frexp(y), np.frexp(z)
        product, error = two_product(mx, my)
        exponent = ex + ey
        # All terms are scaled by the larger exponent of product and addend.
        top = np.where(mz == 0, exponent, np.maximum(exponent, ez))
        down = np.maximum(exponent - top, _LEAST_RELATIVE_EXPONENT)
        addend = np.ldexp(mz, np.maximum(ez - top, _LEAST_RELATIVE_EXPONENT))
        # product + error + addend as an unevaluated sum; the two errors are joined by rounding to odd.
        first, first_rest = two_sum(addend, np.ldexp(error, down))
        total, total_rest = two_sum(np.ldexp(product, down), first)
        high, low = two_sum(total, sum_to_odd(first_rest, total_rest))
        result = assembled(high, low, top, mode)
        if mode == "rm":
            result = np.where(high == 0, np.float64(-0.0), result)  # exact cancellation (IEEE 754, 6.3)
        usual = _finite_nonzero(x, y) & np.isfinite(z)
        # A finite product that overflows must not meet an infinite addend.
        plain = np.where(np.isinf(z) & np.isfinite(x) & np.isfinite(y), np.float64(0), x * y)
        return np.where(usual, result, _double_sum(plain, z, mode))

    return function
