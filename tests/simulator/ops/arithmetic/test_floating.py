"""Floating-point arithmetic against exact fractions: every rounding, infinities, NaN, zeros, subnormals."""

import math

import numpy as np
import pytest

COUNT = 700
PARTS = {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "rcp": 1, "sqrt": 1}
MODES = ("rn", "rz", "rm", "rp")
CASES = [
    *((name, kind, mode) for name in PARTS for kind in ("f32", "f64") for mode in MODES),
    *((name, kind, "rn") for name in ("add", "sub", "mul", "fma") for kind in ("f16", "bf16")),
]


@pytest.mark.every(test=3)
@pytest.mark.parametrize(("name", "kind", "mode"), CASES, ids=[".".join(case) for case in CASES])
def test_the_exact_result_is_rounded_once(machine, oracle, name, kind, mode):
    kinds = (kind,) * PARTS[name]
    columns = oracle.operands(kinds, COUNT, f"{name}{kind}")
    sources = ", ".join(f"{{{index}}}" for index in range(len(kinds)))
    got = oracle.run(machine, f"{name}.{mode}.{kind} {{d}}, {sources};", kinds, kind, columns)
    for bits, result in zip(columns, got, strict=True):
        values = [oracle.number(one, kind) for one in bits]
        want = oracle.float_result(name, values, kind, mode)
        if want is None:
            assert math.isnan(oracle.number(result, kind)), (values, hex(result))
        else:
            assert result == want, ([one.hex() for one in values], hex(result), hex(want))


def test_multiply_add_rounds_once_where_a_double_rounding_would_show(machine, oracle):
    # 1 + 2⁻²³ plus something that float64 loses but that decides the tie of float32.
    tie = [0x3F800001, 0x33800000, 0x3F800000, 0x33000001]
    columns = [
        (0x3F800001, 0x3F800000, low | sign)
        for low in range(0x33000000, 0x33000000 + 400, 7)
        for sign in (0, 0x80000000)
    ]
    columns += [(a, b, c) for a in tie for b in tie for c in (0x00000001, 0x80000001, 0x0B000001, 0x8B000001)]
    columns += [(0x3F800001, 0x33800001 - 1, c) for c in (0x3F800000, 0x00000001, 0x80000001, 0x1B000000)]
    # Subnormal results whose last bit hangs on what float64 drops.
    columns += [(0x20000001 + k, 0x1FC00001, 0x00400001 + k) for k in range(40)]
    for kind, shift in (("f32", 0), ("bf16", 16)):
        given = [tuple(one >> shift for one in row) for row in columns]
        got = oracle.run(machine, f"fma.rn.{kind} {{d}}, {{0}}, {{1}}, {{2}};", (kind,) * 3, kind, given)
        for row, result in zip(given, got, strict=True):
            values = [oracle.number(one, kind) for one in row]
            assert result == oracle.float_result("fma", values, kind, "rn"), [one.hex() for one in values]


def test_a_bfloat_multiply_add_feels_an_addend_far_below_the_product(machine, oracle):
    # 1.5 × 1.0078125 lies halfway between two bfloat16; the addend, 2⁻⁶⁰, decides.
    half = 0x3F81
    for sign in (0, 0x8000):
        columns = [(0x3FC0, half, 0x2180 | sign), (0x3FC0, half, 0)]
        got = oracle.run(machine, "fma.rn.bf16 {d}, {0}, {1}, {2};", ("bf16",) * 3, "bf16", columns)
        for row, result in zip(columns, got, strict=True):
            assert result == oracle.float_result(
                "fma", [oracle.number(one, "bf16") for one in row], "bf16", "rn"
            )


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16", "f64"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_zeros_are_ordered_and_nan_loses(machine, oracle, name, kind):
    columns = oracle.operands((kind, kind), COUNT, name)
    got = oracle.run(machine, f"{name}.{kind} {{d}}, {{0}}, {{1}};", (kind, kind), kind, columns)
    key = lambda bits: (oracle.number(bits, kind), -(bits >> (8 * oracle.width_of(kind) - 1)))  # noqa: E731
    for (a, b), result in zip(columns, got, strict=True):
        numbers = [one for one in (a, b) if not math.isnan(oracle.number(one, kind))]
        if not numbers:
            assert math.isnan(oracle.number(result, kind))
            assert kind == "f64" or result == oracle.NAN[kind]
        else:
            assert result == (min if name == "min" else max)(numbers, key=key)


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16", "f16x2"])
def test_nan_and_crossed_signs_of_extremes(machine, oracle, kind):
    half = kind.removesuffix("x2")
    columns = oracle.operands((half, half), COUNT, kind)
    pack = (lambda bits: bits | (bits << 16)) if kind.endswith("x2") else (lambda bits: bits)
    sign = 1 << (8 * oracle.width_of(half) - 1)
    packed = [tuple(pack(one) for one in row) for row in columns]
    got = oracle.run(machine, f"min.NaN.xorsign.abs.{kind} {{d}}, {{0}}, {{1}};", (kind, kind), kind, packed)
    for (a, b), result in zip(columns, got, strict=True):
        if any(math.isnan(oracle.number(one, half)) for one in (a, b)):
            want = oracle.NAN[half]
        else:
            want = min(a & ~sign, b & ~sign) | ((a ^ b) & sign)
        assert result == pack(want)


def test_saturation_gives_zero_for_nan_and_plus_zero_for_negatives(machine, oracle):
    rows = [(0x7FC00000, 0x3F800000), (0xBF800000, 0x3F800000), (0x80000000, 0x3F800000), (0x3F000000, 0x3F800000),
            (0x40000000, 0x3F800000), (0x7F800000, 0x3F800000)]  # fmt: skip
    got = oracle.run(machine, "mul.sat.f32 {d}, {0}, {1};", ("f32", "f32"), "f32", rows)
    assert got == [0, 0, 0, 0x3F000000, 0x3F800000, 0x3F800000]
    halves = [(one >> 16, two >> 16, 0x8000) for one, two in rows]
    got = oracle.run(machine, "fma.rn.relu.bf16 {d}, {0}, {1}, {2};", ("bf16",) * 3, "bf16", halves)
    assert got == [0x7FFF, 0, 0, 0x3F00, 0x4000, 0x7F80]


def test_flushing_takes_operands_and_results(machine, oracle):
    small = [0x00000001, 0x807FFFFF, 0x00800000, 0x3F800000]
    rows = [(a, b) for a in small for b in (0x3F800000, 0x3F000000, 0x80000001)]
    got = oracle.run(machine, "mul.ftz.f32 {d}, {0}, {1};", ("f32", "f32"), "f32", rows)
    tiny = lambda bits: bits & 0x80000000 if bits & 0x7FFFFFFF < 0x00800000 else bits  # noqa: E731
    for (a, b), result in zip(rows, got, strict=True):
        values = [oracle.number(tiny(one), "f32") for one in (a, b)]
        assert result == tiny(oracle.float_result("mul", values, "f32", "rn"))
    got = oracle.run(
        machine, "setp.eq.ftz.f32 {d}, {0}, {1};", ("f32", "f32"), "pred", [(1, 0), (0x80000001, 5)]
    )
    assert got == [1, 1]


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_properties_of_numbers(machine, oracle, kind):
    rows = [(one,) for one in oracle.edges(kind)]
    tiny = float(np.finfo(np.float32 if kind == "f32" else np.float64).tiny)
    tests = {
        "finite": math.isfinite, "infinite": math.isinf, "notanumber": math.isnan,
        "number": lambda x: not math.isnan(x),
        "normal": lambda x: math.isfinite(x) and (abs(x) >= tiny or x == 0),
        "subnormal": lambda x: 0 < abs(x) < tiny,
    }  # fmt: skip
    for name, test in tests.items():
        got = oracle.run(machine, f"testp.{name}.{kind} {{d}}, {{0}};", (kind,), "pred", rows)
        assert got == [int(test(oracle.number(one, kind))) for (one,) in rows], name


def test_copysign_takes_the_sign_of_its_first_operand_and_moves_nan_unchanged(machine, oracle):
    rows = [(0x80000000, 0x7FC12345), (0x3F800000, 0xFFC12345), (0xFF800001, 0x40000000)]
    got = oracle.run(machine, "copysign.f32 {d}, {0}, {1};", ("f32", "f32"), "f32", rows)
    assert got == [0xFFC12345, 0x7FC12345, 0xC0000000]
