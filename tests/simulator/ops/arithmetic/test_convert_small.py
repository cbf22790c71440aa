"""Conversions of eight-bit floats."""

import math
from fractions import Fraction

import pytest

EIGHT = {"e4m3": (4, -6, 448.0), "e5m2": (3, -14, 57344.0)}


def eight_bits(oracle, value, kind):
    """An 8-bit code by searching all of them: the nearest, of two the even one."""
    precision, least, greatest = EIGHT[kind]
    sign = 0x80 if math.copysign(1, value) < 0 else 0
    if math.isnan(value):
        return 0x7F
    if abs(value) >= greatest:
        value = greatest
    best = min(
        range(0x7F if kind == "e4m3" else 0x7C),
        key=lambda code: (abs(decoded(code, precision, least) - abs(Fraction(value))), code & 1),
    )
    return best | sign


def decoded(code, precision, least):
    exponent, fraction = code >> (precision - 1), code & ((1 << (precision - 1)) - 1)
    whole = fraction + ((1 << (precision - 1)) if exponent else 0)
    return Fraction(whole) * Fraction(2) ** (max(exponent, 1) - 1 + least - precision + 1)


@pytest.mark.parametrize("kind", EIGHT)
def test_eight_bit_floats_there_and_back(machine, oracle, kind):
    precision, least, _ = EIGHT[kind]
    ties = [
        float(decoded(code, precision, least) + decoded(code + 1, precision, least)) / 2
        for code in range(0, 120, 7)
    ]
    values = [
        0.0,
        -0.0,
        1.0,
        448.0,
        463.9,
        464.0,
        57344.0,
        1e9,
        -1e9,
        math.inf,
        -math.inf,
        math.nan,
        0.3,
        -0.07,
        *ties,
    ]
    rows = [
        (
            oracle.rounded(Fraction(a), "f32") if math.isfinite(a) and a else oracle.bits_of(a, "f32"),
            0x3FA00000,
        )
        for a in values
    ]
    got = oracle.run(
        machine, f"cvt.rn.satfinite.{kind}x2.f32 {{d}}, {{0}}, {{1}};", ("f32", "f32"), "b16", rows
    )
    for (bits, _), result in zip(rows, got, strict=True):
        assert result >> 8 == eight_bits(oracle, oracle.number(bits, "f32"), kind), oracle.number(bits, "f32")
        assert result & 255 == eight_bits(oracle, 1.25, kind)
    rows = [(code | (255 - code) << 8,) for code in range(256)]
    got = oracle.run(machine, f"cvt.rn.f16x2.{kind}x2 {{d}}, {{0}};", ("b16",), "b32", rows)
    back = oracle.run(
        machine, f"cvt.rn.satfinite.{kind}x2.f16x2 {{d}}, {{0}};", ("b32",), "b16", [(one,) for one in got]
    )
    for (both,), wide, again in zip(rows, got, back, strict=True):
        for shift in (0, 1):
            code, half = both >> 8 * shift & 255, wide >> 16 * shift & 0xFFFF
            value = oracle.number(half, "f16")
            if not math.isfinite(value):
                assert half == 0x7FFF or (kind == "e5m2" and code & 0x7F == 0x7C)
                continue
            assert abs(Fraction(value)) == decoded(code & 127, precision, least)
            assert again >> 8 * shift & 255 == code
