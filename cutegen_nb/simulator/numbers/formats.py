"""Floating-point formats: widening, narrowing to nearest, NaN, subnormals, packed halves, integral values.

float16 is computed in float32, bfloat16 in float32 or float64, and the result is rounded once. For add,
subtract, multiply, divide and square root this double rounding is harmless: float32 has more than twice the
bits of the narrow format plus two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutegen_nb.simulator.numbers.values import F32, F64, S64, U32, U64, Array, Value

U16 = np.dtype(np.uint16)
F16 = np.dtype(np.float16)
_HALF_TO_SINGLE: Array = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
"""float32 value of every float16 bit pattern."""
SMALLEST_NORMAL = np.float32(2.0**-126)
"""Smallest normal float32, 2**-126."""
_DROPPED = 29
"""Fraction bits of float64 beyond those of float32: 52 - 23."""
CANONICAL_NAN: np.float32 = np.uint32(0x7FFFFFFF).view(np.float32)
"""NaN that single-precision instructions return, 0x7FFFFFFF (PTX ISA, "Floating Point Instructions")."""


def half_to_single(bits: Value) -> Value:
    """Widen float16 bits (uint16) to float32, by a table that is faster than NumPy's own conversion."""
    return _HALF_TO_SINGLE[bits]


def bfloat_to_single(bits: Value) -> Value:
    """Widen bfloat16 bits (uint16) to float32."""
    return (bits.astype(U32) << np.uint32(16)).view(F32)


def canonical(x: Value) -> Value:
    """Replace each NaN of a float32 value by 0x7FFFFFFF (PTX ISA, "Floating Point Instructions")."""
    greatest = x.max()
    if greatest == greatest:  # noqa: PLR0124 - only NaN differs from itself, and max() lets NaN through
        return x
    return np.where(np.isnan(x), CANONICAL_NAN, x)


def single_to_half(x: Value) -> Value:
    """Round float32 or float64 to float16 bits, to nearest even; NaN becomes PTX's 0x7FFF."""
    bits = x.astype(F16).view(U16)
    greatest = x.max()
    if greatest == greatest:  # noqa: PLR0124 - only NaN differs from itself
        return bits
    return np.where(np.isnan(x), U16.type(0x7FFF), bits)


def single_to_bfloat(x: Value) -> Value:
    """Round float32 to bfloat16 bits, to nearest even; NaN becomes PTX's 0x7FFF."""
    bits = x.view(U32)
    # Half a unit less one, plus the last bit kept: a tie carries only where that bit is odd.
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    greatest = x.max()
    if greatest != greatest:  # noqa: PLR0124 - only NaN differs from itself
        rounded = np.where(np.isnan(x), np.uint32(0x7FFF), rounded)
    return rounded.astype(U16)


def flushed(x: Value) -> Value:
    """Replace float32 subnormals by zeros of their sign (``.ftz``)."""
    small = np.abs(x) < SMALLEST_NORMAL
    if not small.any():
        return x
    return np.where(small, np.copysign(np.float32(0), x), x)


def saturated(x: Value) -> Value:
    """Clamp to [+0, 1]; NaN becomes +0 (``.sat``)."""
    zero = x.dtype.type(0)
    return np.fmin(np.fmax(x, zero), x.dtype.type(1)) + zero  # −0 + 0 is +0


def truncate_to_fraction_bits(x: Value, bits: int) -> Value:
    """Truncate float64 to ``bits`` fraction bits, as float32.

    This models each approximate instruction with a relative error bound of 2**-bits. The simulated error
    approaches the documented bound and never exceeds it. Results that a GPU gives exactly (powers of two)
    stay exact. Subnormal results are rounded by the conversion to float32.
    """
    # _DROPPED + 23 = 52 fraction bits of float64, of which the upper ``bits`` stay.
    drop = _DROPPED + 23 - bits
    cut = (x.view(U64) & U64.type(~((1 << drop) - 1) & 0xFFFFFFFFFFFFFFFF)).view(F64)
    return cut.astype(F32)


def truncate_to_multiple(x: Value, bits: int) -> Value:
    """Truncate float64 to a multiple of 2**-bits, as float32: the model of an absolute error bound."""
    scale = np.float64(1 << bits)
    cut = np.trunc(x * scale) / scale  # scaling by a power of two is exact
    return np.copysign(cut, x).astype(F32)


def _eight_bit_table(fraction_bits: int, bias: int) -> Array:
    """All 256 values of an 8-bit format as float32; the caller sets infinities and NaN."""
    code = np.arange(256)
    fraction = code & ((1 << fraction_bits) - 1)
    exponent = (code & 127) >> fraction_bits
    # Normal: 2**(e - bias) × 1.f. Subnormal (e = 0): 2**(1 - bias) × 0.f.
    whole = np.where(exponent > 0, fraction + (1 << fraction_bits), fraction)
    value = np.ldexp(whole.astype(F64), np.maximum(exponent, 1) - bias - fraction_bits)
    return np.where(code >> 7 == 1, -value, value).astype(F32)


E4M3_TO_SINGLE: Array = _eight_bit_table(3, 7)
"""float32 by e4m3 code: no infinities, NaN where all bits but the sign are one (PTX ISA, "Data Types")."""
E4M3_TO_SINGLE[[0x7F, 0xFF]] = np.nan
E5M2_TO_SINGLE: Array = _eight_bit_table(2, 15)
"""float32 by e5m2 code: IEEE-like, with infinities and NaN."""
E5M2_TO_SINGLE[[0x7C, 0xFC]] = np.inf, -np.inf
E5M2_TO_SINGLE[[0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]] = np.nan
_EIGHT: dict[str, tuple[int, int, int]] = {"e4m3": (3, -6, 0x7E), "e5m2": (2, -14, 0x7B)}
"""Fraction bits, exponent of the least normal number, and code of the greatest finite number, by format."""


def to_eight_bits(x: Value, kind: str) -> Value:
    """Round float32 to e4m3 or e5m2 codes (uint8), to nearest even.

    A number beyond the range becomes the greatest finite one of its sign (``.satfinite``); NaN becomes 0x7F.
    """
    fraction_bits, least, greatest = _EIGHT[kind]
    magnitude = np.abs(x).astype(F64)
    # frexp gives a mantissa in [0.5, 1), so floor(log2 |x|) is its exponent less one. One unit in the last
    # place is 2**unit; below the least normal number it stays that of the subnormals.
    _, exponent = np.frexp(magnitude)
    unit = np.maximum(np.where(magnitude == 0, least, exponent - 1), least) - fraction_bits
    steps = np.rint(np.ldexp(magnitude, -unit)).astype(S64)  # exact scaling, then one rounding
    # The implicit one of a normal number adds the exponent's first unit, and a carry from rounding the next.
    code = steps + ((unit + fraction_bits - least) << fraction_bits)
    code = np.where(magnitude > np.float64({"e4m3": 448, "e5m2": 57344}[kind]), greatest, code)
    code = np.minimum(code, greatest) | np.where(np.signbit(x), 0x80, 0)
    return np.where(np.isnan(x), 0x7F, code).astype(np.uint8)


def paired(function: Callable[..., Value], *values: Value) -> Value:
    """Apply a function of uint16 halves to packed uint32 values, to the low and the high halves at once."""
    return joined(function(*(halves(one, U16) for one in values)))


def halves(value: Value, part: np.dtype[Any]) -> Value:
    """Split packed uint32 into halves of a 16-bit dtype along a new last axis, the low half first."""
    whole = value.view(U32)
    return np.ascontiguousarray(whole).view(part).reshape((*whole.shape, 2))


def joined(result: Value) -> Value:
    """Pack 16-bit halves along the last axis into uint32; the inverse of :func:`halves`."""
    return np.ascontiguousarray(result).view(U32)[..., 0]


def integer_of(x: Value, mode: str, dtype: np.dtype[Any], *, wide_source: bool = False) -> Value:
    """Convert a float to an integer, rounded as PTX's rni, rzi, rmi or rpi; numbers out of range saturate.

    NaN gives 0. Where the source is f64 or the result has 64 bits, NaN gives the bit pattern of a one
    followed by zeros (PTX ISA, ``cvt``, "Notes").
    """
    rounded = rounded_to_integer(x.astype(F64), mode)
    info = np.iinfo(dtype)
    bits = 8 * dtype.itemsize
    large = wide_source or dtype.itemsize == S64.itemsize
    nobody = np.dtype(f"u{dtype.itemsize}").type(1 << (bits - 1)).view(dtype) if large else dtype.type(0)
    if dtype.itemsize < S64.itemsize:
        # Both bounds of an integer of up to 32 bits are exact in float64.
        inside = np.clip(rounded, float(info.min), float(info.max))
        plain = np.nan_to_num(inside, nan=0.0).astype(S64).astype(dtype)
    else:
        # float(info.max) rounds up to 2**63 or 2**64, which the integer cannot hold: the bounds are put in
        # afterwards, and 0 stands in for what astype leaves undefined.
        over, under = rounded >= float(info.max), rounded <= float(info.min)
        plain = np.where(over | under | np.isnan(rounded), np.float64(0), rounded).astype(dtype)
        plain = np.where(over, dtype.type(info.max), np.where(under, dtype.type(info.min), plain))
    return np.where(np.isnan(rounded), nobody, plain)


def rounded_to_integer(x: Value, mode: str) -> Value:
    """Round a float to an integral value of the same dtype: rni to even, rmi down, rpi up, else to zero."""
    if mode == "rni":
        return np.rint(x)
    if mode == "rmi":
        return np.floor(x)
    if mode == "rpi":
        return np.ceil(x)
    return np.trunc(x)
