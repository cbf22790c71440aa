"""Conversions between every pair of formats in every rounding, against exact fractions."""

import math
from fractions import Fraction

import pytest

FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
MODES = ("rn", "rz", "rm", "rp")
COUNT = 120


def register_kind(kind):
    """Bytes live in 32-bit registers."""
    return {"u8": "u32", "s8": "s32"}.get(kind, kind)


def narrowed(bits, kind):
    """Part of an operand in a wider register that an instruction sees, as a number."""
    width = int(kind[1:])
    value = bits & ((1 << width) - 1)
    return value - (1 << width) if kind[0] == "s" and value >> (width - 1) else value


@pytest.mark.every(test=3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wanted", FLOATS)
def test_integers_become_floats_rounded_once(machine, oracle, wanted, mode):
    for kind in INTEGERS:
        columns = oracle.operands((register_kind(kind),), COUNT, kind + wanted)
        big = [((1 << 63) + (1 << 39) + low,) for low in (-1, 0, 1)] + [((1 << 62) + (1 << 54) + 1,)]
        columns += big if kind[1:] == "64" else []
        got = oracle.run(
            machine, f"cvt.{mode}.{wanted}.{kind} {{d}}, {{0}};", (register_kind(kind),), wanted, columns
        )
        for (bits,), result in zip(columns, got, strict=True):
            value = narrowed(bits, kind)
            assert result == (oracle.rounded(Fraction(value), wanted, mode) if value else 0), (kind, value)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
def test_floats_become_integers_clamped_to_their_range(machine, oracle, kind, mode):
    whole = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode]
    for wanted in INTEGERS:
        columns = oracle.operands((kind,), COUNT, kind + wanted)
        target = register_kind(wanted)
        got = oracle.run(machine, f"cvt.{mode}.{wanted}.{kind} {{d}}, {{0}};", (kind,), target, columns)
        bits = int(wanted[1:])
        low, high = (0, (1 << bits) - 1) if wanted[0] == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        for (given,), result in zip(columns, got, strict=True):
            value = oracle.number(given, kind)
            if math.isnan(value):
                want = narrowed(1 << (bits - 1), wanted) if kind == "f64" or bits == 64 else 0
            elif math.isinf(value):
                want = high if value > 0 else low
            else:
                want = max(low, min(high, whole(Fraction(value))))
            assert result == want & ((1 << 8 * oracle.width_of(target)) - 1), (wanted, value)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f64", "f32", "f16", "bf16"])
def test_floats_become_narrower_floats_rounded_once(machine, oracle, kind, mode):
    for wanted in FLOATS:
        if oracle.FORMAT[wanted][0] >= oracle.FORMAT[kind][0] and wanted != "bf16":
            continue
        columns = oracle.operands((kind,), 3 * COUNT, kind + wanted + mode)
        got = oracle.run(machine, f"cvt.{mode}.{wanted}.{kind} {{d}}, {{0}};", (kind,), wanted, columns)
        for (bits,), result in zip(columns, got, strict=True):
            value = oracle.number(bits, kind)
            assert result == oracle.float_result("cvt", [value], wanted, mode), (wanted, value)


def test_floats_become_wider_floats_unchanged(machine, oracle):
    for kind, wanted in (("f16", "f32"), ("bf16", "f32"), ("f16", "f64"), ("bf16", "f64"), ("f32", "f64")):
        columns = [
            row
            for row in oracle.operands((kind,), 300, wanted)
            if not math.isnan(oracle.number(row[0], kind))
        ]
        got = oracle.run(machine, f"cvt.{wanted}.{kind} {{d}}, {{0}};", (kind,), wanted, columns)
        for (bits,), result in zip(columns, got, strict=True):
            value = oracle.number(bits, kind)
            assert oracle.number(result, wanted) == value
            assert math.copysign(1, oracle.number(result, wanted)) == math.copysign(1, value)


@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
def test_floats_round_to_whole_floats(machine, oracle, kind):
    columns = [
        row for row in oracle.operands((kind,), 200, kind) if math.isfinite(oracle.number(row[0], kind))
    ]
    for mode, whole in (("rni", round), ("rzi", math.trunc), ("rmi", math.floor), ("rpi", math.ceil)):
        got = oracle.run(machine, f"cvt.{mode}.{kind}.{kind} {{d}}, {{0}};", (kind,), kind, columns)
        for (bits,), result in zip(columns, got, strict=True):
            value = oracle.number(bits, kind)
            exact = whole(Fraction(value))
            assert oracle.number(result, kind) == exact
            assert exact or math.copysign(1, oracle.number(result, kind)) == math.copysign(1, value)


def clamped(value, *, sat=False, relu=False, greatest=None):
    if math.isnan(value):
        return 0.0 if sat else value
    if sat:
        return min(max(value, 0.0), 1.0) + 0.0
    if relu and value <= 0:
        return 0.0
    if greatest is not None and abs(value) > greatest:
        return math.copysign(greatest, value)
    return value


@pytest.mark.parametrize(
    ("template", "wanted", "limits"),
    [
        ("cvt.rn.sat.f16.f32", "f16", {"sat": True}),
        ("cvt.rz.sat.f16.f64", "f16", {"sat": True}),
        ("cvt.sat.f32.f32", "f32", {"sat": True}),
        ("cvt.rn.relu.f16.f32", "f16", {"relu": True}),
        ("cvt.rn.relu.bf16.f32", "bf16", {"relu": True}),
        ("cvt.rn.satfinite.f16.f32", "f16", {"greatest": 65504.0}),
    ],
)
def test_modifiers_bound_a_number_before_it_is_rounded(machine, oracle, template, wanted, limits):
    kind = template.rsplit(".", 1)[1]
    columns = oracle.operands((kind,), 300, template)
    got = oracle.run(machine, template + " {d}, {0};", (kind,), wanted, columns)
    for (bits,), result in zip(columns, got, strict=True):
        value = clamped(oracle.number(bits, kind), **limits)
        mode = "rz" if ".rz" in template else "rn"
        assert result == oracle.float_result("cvt", [value], wanted, mode), value


def test_tensor_float_keeps_ten_fraction_bits(machine, oracle):
    columns = oracle.operands(("f32",), 400, "tf32")
    for mode in ("rn", "rna", "rz"):
        got = oracle.run(machine, f"cvt.{mode}.tf32.f32 {{d}}, {{0}};", ("f32",), "b32", columns)
        for (bits,), result in zip(columns, got, strict=True):
            value = oracle.number(bits, "f32")
            if math.isnan(value):
                assert result == (bits & 0xFFFFE000 if mode == "rna" else 0x7FFFE000)
                continue
            if math.isinf(value):
                assert result == bits
                continue
            magnitude, rest = bits & 0x7FFFE000, bits & 0x1FFF
            up = {
                "rz": False,
                "rna": rest >= 0x1000,
                "rn": rest > 0x1000 or (rest == 0x1000 and bits >> 13 & 1),
            }[mode]
            assert result == (bits & 0x80000000) | (magnitude + 0x2000 * int(bool(up)))
