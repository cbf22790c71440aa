"""Floating-point formats: widening, narrowing to nearest, NaN, subnormals, packed halves, integral values.

Half precision is computed in float32 and bfloat16 in float32 or float64 and rounded once; for add, subtract,
multiply, divide and square root that double rounding cannot be seen, because float32 has more than twice the
bits plus two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutegen_nb.simulator.values import F32, F64, S64, U32, U64, Array, Value

U16 = np.dtype(np.uint16)
F16 = np.dtype(np.float16)
_HALF_TO_SINGLE: Array = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
SMALLEST_NORMAL = np.float32(2.0**-126)
"""Of float32."""
_DROPPED = 29
"""Fraction bits that float64 has more than float32."""
CANONICAL_NAN: np.float32 = np.uint32(0x7FFFFFFF).view(np.float32)
"""What single-precision instructions give for NaN."""


def half_to_single(bits: Value) -> Value:
    """float16 bits as uint16 → float32; a table is faster than NumPy's own conversion."""
    return _HALF_TO_SINGLE[bits]


def bfloat_to_single(bits: Value) -> Value:
    """bfloat16 bits as uint16 → float32."""
    return (bits.astype(U32) << np.uint32(16)).view(F32)


def canonical(x: Value) -> Value:
    """float32 with every NaN as PTX's canonical one, 0x7FFFFFFF (PTX ISA, "Floating Point Instructions")."""
    greatest = x.max()
    if greatest == greatest:  # noqa: PLR0124 - only NaN differs from itself, and max() lets NaN through
        return x
    return np.where(np.isnan(x), CANONICAL_NAN, x)


def single_to_half(x: Value) -> Value:
    """float32 or float64 → float16 bits, to nearest even; NaN becomes PTX's 0x7FFF."""
    bits = x.astype(F16).view(U16)
    greatest = x.max()
    if greatest == greatest:  # noqa: PLR0124 - only NaN differs from itself
        return bits
    return np.where(np.isnan(x), U16.type(0x7FFF), bits)


def single_to_bfloat(x: Value) -> Value:
    """float32 → bfloat16 bits, to nearest even; NaN becomes PTX's 0x7FFF."""
    bits = x.view(U32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    greatest = x.max()
    if greatest != greatest:  # noqa: PLR0124 - only NaN differs from itself
        rounded = np.where(np.isnan(x), np.uint32(0x7FFF), rounded)
    return rounded.astype(U16)


def flushed(x: Value) -> Value:
    """float32 with subnormals replaced by zeros of their sign (``.ftz``)."""
    small = np.abs(x) < SMALLEST_NORMAL
    if not small.any():
        return x
    return np.where(small, np.copysign(np.float32(0), x), x)


def saturated(x: Value) -> Value:
    """Clamped to +0 … 1, NaN to 0 (``.sat``)."""
    zero = x.dtype.type(0)
    return np.fmin(np.fmax(x, zero), x.dtype.type(1)) + zero  # −0 + 0 is +0


def kept_bits(x: Value, bits: int) -> Value:
    """float64 → float32 with ``bits`` fraction bits, cut towards zero.

    The rule for every approximate instruction with a relative error bound of 2**-bits: the exact result is
    cut to that many bits, so the simulated error reaches towards the documented bound and never beyond, and
    results that a GPU gives exactly (powers of two) stay exact. Subnormal results are rounded by the
    conversion.
    """
    drop = _DROPPED + 23 - bits
    cut = (x.view(U64) & U64.type(~((1 << drop) - 1) & 0xFFFFFFFFFFFFFFFF)).view(F64)
    return cut.astype(F32)


def kept_absolute(x: Value, bits: int) -> Value:
    """float64 → float32, cut towards zero to a multiple of 2**-bits: the rule for absolute error bounds."""
    scale = np.float64(1 << bits)
    cut = np.trunc(x * scale) / scale
    return np.copysign(cut, x).astype(F32)


def _eight_bits(fraction_bits: int, bias: int) -> Array:
    """All 256 numbers of an 8-bit format as float32; the caller puts infinities and NaN in."""
    code = np.arange(256)
    fraction = code & ((1 << fraction_bits) - 1)
    exponent = (code & 127) >> fraction_bits
    whole = np.where(exponent > 0, fraction + (1 << fraction_bits), fraction)
    value = np.ldexp(whole.astype(F64), np.maximum(exponent, 1) - bias - fraction_bits)
    return np.where(code >> 7 == 1, -value, value).astype(F32)


E4M3_TO_SINGLE: Array = _eight_bits(3, 7)
"""e4m3 code → float32: no infinities, NaN where all but the sign is one (PTX ISA, "Data Types")."""
E4M3_TO_SINGLE[[0x7F, 0xFF]] = np.nan
E5M2_TO_SINGLE: Array = _eight_bits(2, 15)
"""e5m2 code → float32: IEEE-like, with infinities and NaN."""
E5M2_TO_SINGLE[[0x7C, 0xFC]] = np.inf, -np.inf
E5M2_TO_SINGLE[[0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]] = np.nan
_EIGHT: dict[str, tuple[int, int, int]] = {"e4m3": (3, -6, 0x7E), "e5m2": (2, -14, 0x7B)}
"""Fraction bits, least exponent and code of the greatest finite number."""


def to_eight_bits(x: Value, kind: str) -> Value:
    """float32 → e4m3 or e5m2 codes as uint8, to nearest even; beyond the range the greatest, NaN 0x7F."""
    fraction_bits, least, greatest = _EIGHT[kind]
    magnitude = np.abs(x).astype(F64)
    _, exponent = np.frexp(magnitude)
    unit = np.maximum(np.where(magnitude == 0, least, exponent - 1), least) - fraction_bits
    steps = np.rint(np.ldexp(magnitude, -unit)).astype(S64)  # exact scaling, then one rounding
    # A normal number's steps begin at 2**fraction_bits; a carry into the next exponent adds itself up.
    code = steps + ((unit + fraction_bits - least) << fraction_bits)
    code = np.where(magnitude > np.float64({"e4m3": 448, "e5m2": 57344}[kind]), greatest, code)
    code = np.minimum(code, greatest) | np.where(np.signbit(x), 0x80, 0)
    return np.where(np.isnan(x), 0x7F, code).astype(np.uint8)


def paired(function: Callable[..., Value], *values: Value) -> Value:
    """Apply a function of uint16 halves to packed uint32 values, low half and high half."""
    return joined(function(*(halves(one, U16) for one in values)))


def halves(value: Value, part: np.dtype[Any]) -> Value:
    """Packed uint32 → halves of a 16-bit dtype along a new last axis, the low one first."""
    whole = value.view(U32)
    return np.ascontiguousarray(whole).view(part).reshape((*whole.shape, 2))


def joined(result: Value) -> Value:
    """16-bit halves along the last axis → packed uint32."""
    return np.ascontiguousarray(result).view(U32)[..., 0]


def integer_of(x: Value, mode: str, dtype: np.dtype[Any], *, wide_source: bool = False) -> Value:
    """Float → integer as PTX's rni, rzi, rmi, rpi; out of range saturates.

    NaN gives 0, but the bit pattern 1 followed by zeros where the source is f64 or the result has 64 bits
    (PTX ISA, ``cvt``, "Notes").
    """
    rounded = rounded_to_integer(x.astype(F64), mode)
    info = np.iinfo(dtype)
    bits = 8 * dtype.itemsize
    large = wide_source or dtype.itemsize == S64.itemsize
    nobody = np.dtype(f"u{dtype.itemsize}").type(1 << (bits - 1)).view(dtype) if large else dtype.type(0)
    if dtype.itemsize < S64.itemsize:
        inside = np.clip(rounded, float(info.min), float(info.max))
        plain = np.nan_to_num(inside, nan=0.0).astype(S64).astype(dtype)
    else:
        over, under = rounded >= float(info.max), rounded <= float(info.min)
        plain = np.where(over | under | np.isnan(rounded), np.float64(0), rounded).astype(dtype)
        plain = np.where(over, dtype.type(info.max), np.where(under, dtype.type(info.min), plain))
    return np.where(np.isnan(rounded), nobody, plain)


def rounded_to_integer(x: Value, mode: str) -> Value:
    """Float rounded to an integral value, same dtype."""
    if mode == "rni":
        return np.rint(x)
    if mode == "rmi":
        return np.floor(x)
    if mode == "rpi":
        return np.ceil(x)
    return np.trunc(x)
