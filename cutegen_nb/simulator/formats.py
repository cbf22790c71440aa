"""Floating-point formats: conversion with PTX's roundings, flushing of subnormals, and exact multiply-add.

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
_SMALLEST_NORMAL = np.float32(2.0**-126)
_DROPPED = 29
"""Fraction bits that float64 has more than float32."""


def half_to_single(bits: Value) -> Value:
    """float16 bits as uint16 → float32; a table is faster than NumPy's own conversion."""
    return _HALF_TO_SINGLE[bits]


def bfloat_to_single(bits: Value) -> Value:
    """bfloat16 bits as uint16 → float32."""
    return (bits.astype(U32) << np.uint32(16)).view(F32)


def single_to_half(x: Value) -> Value:
    """float32 or float64 → float16 bits, to nearest even."""
    return x.astype(F16).view(U16)


def single_to_bfloat(x: Value) -> Value:
    """float32 → bfloat16 bits, to nearest even; NaN becomes PTX's 0x7FFF."""
    bits = x.view(U32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    nan = np.isnan(x)
    if nan.any():
        rounded = np.where(nan, np.uint32(0x7FFF), rounded)
    return rounded.astype(U16)


def double_to_bfloat(x: Value) -> Value:
    """float64 → bfloat16 bits with one rounding: float32 rounded to odd keeps what decides it."""
    return single_to_bfloat(round_to_odd(x))


def round_to_odd(x: Value) -> Value:
    """float64 → float32, inexact results to the neighbour whose last bit is one (Boldo and Melquiond)."""
    below = toward(x, "rz")
    inexact = below.astype(F64) != x
    return (below.view(U32) | (inexact & np.isfinite(below)).astype(U32)).view(F32)


def flushed(x: Value) -> Value:
    """float32 with subnormals replaced by zeros of their sign (``.ftz``)."""
    small = np.abs(x) < _SMALLEST_NORMAL
    if not small.any():
        return x
    return np.where(small, np.copysign(np.float32(0), x), x)


def toward(x: Value, mode: str) -> Value:
    """float64 → float32 rounded as PTX's ``mode``: rn, rz, rm (down), rp (up)."""
    nearest = x.astype(F32)
    if mode == "rn":
        return nearest
    back = nearest.astype(F64)
    if mode == "rz":
        wrong = np.abs(back) > np.abs(x)
        other = np.nextafter(nearest, np.float32(0))
    elif mode == "rm":
        wrong, other = back > x, np.nextafter(nearest, np.float32(-np.inf))
    else:
        wrong, other = back < x, np.nextafter(nearest, np.float32(np.inf))
    return np.where(wrong, other, nearest)


def saturated(x: Value) -> Value:
    """Clamped to 0 … 1, NaN to 0 (``.sat``)."""
    return np.fmin(np.fmax(x, x.dtype.type(0)), x.dtype.type(1))


def multiply_add_single(x: Value, y: Value, z: Value) -> Value:
    """float32 ``x × y + z``.

    The product is exact in float64; the sum rounds there once and to float32 once more, which differs from
    one rounding only where the float64 sum falls within 2⁻⁵³ of a tie: about once in 10⁹ random operations,
    by one ulp.
    """
    return multiply_add_wide(x, y, z).astype(F32)


def multiply_add_wide(x: Value, y: Value, z: Value) -> Value:
    """float32 ``x × y + z`` in float64."""
    wide = x.astype(F64)
    if wide.ndim and wide.shape == np.broadcast_shapes(y.shape, z.shape, wide.shape):
        np.multiply(wide, y, out=wide)
        return np.add(wide, z, out=wide)
    return wide * y.astype(F64) + z.astype(F64)


def multiply_add_double(x: Value, y: Value, z: Value) -> Value:
    """Float64 ``x × y + z``, the product's error carried (Dekker, Knuth): rounded once but for rare ties."""
    product = x * y
    plain = product + z
    splitter = np.float64(134217729.0)
    xh = x * splitter
    xh = xh - (xh - x)
    yh = y * splitter
    yh = yh - (yh - y)
    xl, yl = x - xh, y - yh
    error = ((xh * yh - product) + xh * yl + xl * yh) + xl * yl
    part = plain - product
    rest = (product - (plain - part)) + (z - part)
    exact = plain + (rest + error)
    return np.where(np.isfinite(exact), exact, plain)


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


def paired(function: Callable[..., Value], *values: Value) -> Value:
    """Apply a function of uint16 halves to packed uint32 values, low half and high half."""
    halves = [_halves(one) for one in values]
    result = function(*halves)
    return joined(result)


def _halves(value: Value) -> Value:
    plain = np.ascontiguousarray(value.view(U32))
    return plain.view(U16).reshape((*np.shape(value), 2))


def joined(result: Value) -> Value:
    """uint16 halves along the last axis → packed uint32."""
    return np.ascontiguousarray(result).view(U32)[..., 0]


def integer_of(x: Value, mode: str, dtype: np.dtype[Any]) -> Value:
    """Float → integer as PTX's rni, rzi, rmi, rpi; out of range saturates, NaN gives 0."""
    rounded = rounded_to_integer(x.astype(F64), mode)
    info = np.iinfo(dtype)
    low, high = float(info.min), float(info.max)
    if dtype.itemsize < S64.itemsize:
        return np.nan_to_num(np.clip(rounded, low, high), nan=0.0).astype(S64).astype(dtype)
    over, under = rounded >= high, rounded <= low
    inside = np.where(over | under | np.isnan(rounded), np.float64(0), rounded)
    result = inside.astype(dtype)
    return np.where(over, dtype.type(info.max), np.where(under, dtype.type(info.min), result))


def rounded_to_integer(x: Value, mode: str) -> Value:
    """Float rounded to an integral value, same dtype."""
    if mode == "rni":
        return np.rint(x)
    if mode == "rmi":
        return np.floor(x)
    if mode == "rpi":
        return np.ceil(x)
    return np.trunc(x)
