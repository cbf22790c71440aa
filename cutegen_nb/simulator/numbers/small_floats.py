"""Floats of 4 and 6 bits, and the scales of their blocks (OCP Microscaling Formats; PTX ISA, "Data Types").

None of them has infinities. A scale ue8m0 is a power of two, ue4m3 is e4m3 without a sign.
"""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.numbers.formats import E4M3_TO_SINGLE
from cutegen_nb.simulator.numbers.values import F32, F64, S64, Array, Value

_PARTS = {"e2m1": (2, 1), "e2m3": (2, 3), "e3m2": (3, 2)}
"""Bits of exponent and fraction by format."""
SMALL_FLOATS = frozenset(_PARTS)
_BIAS = 127
"""Bias of ue8m0; its code 255 is NaN."""
_NAN = 255


def _table(exponent_bits: int, fraction_bits: int) -> Array:
    """Values of all codes as float32."""
    codes = np.arange(1 << (1 + exponent_bits + fraction_bits))
    exponent = codes >> fraction_bits & (1 << exponent_bits) - 1
    fraction = codes & (1 << fraction_bits) - 1
    bias = (1 << (exponent_bits - 1)) - 1
    # Normal: 1.f × 2**(e - bias); subnormal (e = 0): 0.f × 2**(1 - bias).
    whole = np.where(exponent > 0, fraction + (1 << fraction_bits), fraction).astype(F64)
    numbers = whole * 2.0 ** (np.maximum(exponent, 1) - bias - fraction_bits)
    return np.where(codes >> (exponent_bits + fraction_bits) == 1, -numbers, numbers).astype(F32)


VALUES: dict[str, Array] = {name: _table(*parts) for name, parts in _PARTS.items()}
"""Value of each code, float32, by format."""


def codes_of(x: Value, kind: str) -> Value:
    """Round float32 to codes (uint8), to nearest even.

    A number beyond the range becomes the greatest of its sign, NaN the greatest one (PTX ISA, ``cvt``).
    """
    exponent_bits, fraction_bits = _PARTS[kind]
    least = 2 - (1 << (exponent_bits - 1))  # exponent of the least normal number: 1 - bias
    greatest = (1 << (exponent_bits + fraction_bits)) - 1
    magnitude = np.abs(x).astype(F64)
    magnitude = np.where(np.isfinite(magnitude), magnitude, 1e9)  # beyond every range
    # frexp gives a mantissa in [0.5, 1), so floor(log2 |x|) is its exponent less one.
    _, exponent = np.frexp(magnitude)
    unit = np.maximum(np.where(magnitude == 0, least, exponent - 1), least) - fraction_bits
    steps = np.rint(np.ldexp(magnitude, -unit)).astype(S64)  # exact scaling, then one rounding
    code = np.minimum(steps + ((unit + fraction_bits - least) << fraction_bits), greatest)
    negative = np.signbit(x) & ~np.isnan(x)
    return (code | np.where(negative, greatest + 1, 0)).astype(np.uint8)


def scale_values(codes: Value, kind: str) -> Value:
    """Values of scales as float64: ue8m0 or ue4m3 codes (uint8)."""
    if kind == "ue4m3":
        return E4M3_TO_SINGLE[codes & np.uint8(0x7F)].astype(F64)
    exponent = codes.astype(S64)
    return np.where(exponent == _NAN, np.nan, np.ldexp(1.0, exponent - _BIAS))


def scale_codes(x: Value, *, upwards: bool) -> Value:
    """Round float32 to ue8m0 codes (uint8): to the power of two below, or above with ``upwards``.

    Numbers below the range become its least, those beyond its greatest; NaN 255 (PTX ISA, ``cvt``).
    """
    magnitude = np.abs(x).astype(F64)
    mantissa, exponent = np.frexp(np.where(np.isfinite(magnitude), magnitude, 1e60))
    above = upwards & (mantissa > 0.5)  # noqa: PLR2004 - the mantissa of a power of two
    code = np.clip(np.where(magnitude == 0, 0, exponent - 1 + above + _BIAS), 0, _NAN - 1)
    return np.where(np.isnan(x), _NAN, code).astype(np.uint8)
