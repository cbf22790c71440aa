"""Approximate functions stay within their documented error."""

import math

import numpy as np
import pytest


def test_division_by_a_huge_number_is_zero_or_nan_where_approximate(machine, oracle):
    rows = [
        (0x3F800000, 0x7F000000),
        (0xBF800000, 0x7F000000),
        (0x7F800000, 0x7F000000),
        (0x3F800000, 0x7E800000),
    ]
    got = oracle.run(machine, "div.approx.f32 {d}, {0}, {1};", ("f32", "f32"), "f32", rows)
    assert got[:3] == [0, 0x80000000, 0x7FFFFFFF]
    assert got[3] != 0


APPROXIMATE = [
    ("ex2.approx.f32", "f32", lambda x: 2.0**x, 2.0**-22, 0, (-20, 20)),
    ("ex2.approx.f16", "f16", lambda x: 2.0**x, 2.0**-9.9, 0, (-6, 6)),
    ("ex2.approx.ftz.bf16", "bf16", lambda x: 2.0**x, 2.0**-7, 0, (-20, 20)),
    ("tanh.approx.f32", "f32", math.tanh, 2.0**-11, 0, (-4, 4)),
    ("tanh.approx.f16", "f16", math.tanh, 0, 2.0**-10.987, (-4, 4)),
    ("tanh.approx.bf16", "bf16", math.tanh, 0, 2.0**-8, (-4, 4)),
    ("lg2.approx.f32", "f32", math.log2, 0, 2.0**-22, (0.51, 1.99)),
    ("lg2.approx.f32", "f32", math.log2, 2.0**-22, 0, (2.01, 1e9)),
    ("sin.approx.f32", "f32", math.sin, 0, 2.0**-20.5, (-6.28, 6.28)),
    ("cos.approx.f32", "f32", math.cos, 0, 2.0**-14.7, (7, 314)),
    ("rcp.approx.f32", "f32", lambda x: 1 / x, 2.0**-23, 0, (0.001, 900)),
    ("sqrt.approx.f32", "f32", math.sqrt, 2.0**-23, 0, (0.001, 900)),
    ("rsqrt.approx.f32", "f32", lambda x: 1 / math.sqrt(x), 2.0**-22.9, 0, (0.001, 900)),
    ("rcp.approx.ftz.f64", "f64", lambda x: 1 / x, 2.0**-19, 0, (0.001, 900)),
    ("rsqrt.approx.ftz.f64", "f64", lambda x: 1 / math.sqrt(x), 2.0**-19, 0, (0.001, 900)),
]


@pytest.mark.parametrize("case", APPROXIMATE, ids=[f"{case[0]}-{case[5][0]}" for case in APPROXIMATE])
def test_an_approximation_uses_the_error_it_is_documented_to_have(machine, oracle, case):
    name, kind, exact, relative, absolute, span = case
    values = np.random.default_rng(7).uniform(*span, 600)
    if kind == "bf16":
        bits = [int(one) >> 16 for one in values.astype(np.float32).view(np.uint32)]
    else:
        dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
        bits = [int(one) for one in values.astype(dtype).view(f"u{np.dtype(dtype).itemsize}")]
    got = oracle.run(machine, f"{name} {{d}}, {{0}};", (kind,), kind, [(one,) for one in bits])
    truth = [exact(oracle.number(one, kind)) for one in bits]
    errors = [abs(oracle.number(one, kind) - true) for one, true in zip(got, truth, strict=True)]
    bounds = [abs(true) * relative + absolute for true in truth]
    assert all(error <= bound for error, bound in zip(errors, bounds, strict=True))
    assert max(error / bound for error, bound in zip(errors, bounds, strict=True)) > 0.4
