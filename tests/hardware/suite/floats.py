"""Floating-point arithmetic that is exactly defined (PTX ISA, "Floating Point" and "Half Precision" chapters)."""

from __future__ import annotations

from suite.cases import VALUE, Case, case

_ROUNDINGS = ("rn", "rz", "rm", "rp")


def single() -> list[Case]:
    """float32."""
    rows: list[tuple[str, str]] = []
    for mode in _ROUNDINGS:
        for flush in ("", ".ftz"):
            for sat in ("", ".sat"):
                rows += [
                    (f"{name}.{mode}{flush}{sat}.f32", "f32 f32 > f32") for name in ("add", "sub", "mul")
                ]
                rows.append((f"fma.{mode}{flush}{sat}.f32", "f32 f32 f32 > f32"))
            rows.append((f"div.{mode}{flush}.f32", "f32 f32 > f32"))
            rows += [(f"{name}.{mode}{flush}.f32", "f32 > f32") for name in ("rcp", "sqrt")]
    rows += [(f"{name}.f32", "f32 f32 > f32") for name in ("add", "sub", "mul", "copysign")]
    rows.append(("mad.rn.f32", "f32 f32 f32 > f32"))
    for name in ("min", "max"):
        for flush in ("", ".ftz"):
            for nan in ("", ".NaN"):
                for sign in ("", ".xorsign.abs"):
                    rows.append((f"{name}{flush}{nan}{sign}.f32", "f32 f32 > f32"))
    rows += [(f"{name}{flush}.f32", "f32 > f32") for name in ("abs", "neg") for flush in ("", ".ftz")]
    rows += [
        (f"testp.{what}.f32", "f32 > pred")
        for what in ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    ]
    return [case("float32", *row) for row in rows] + [
        case(
            "float32",
            "mul.f32 then add",
            "f32 f32 f32 > f32",
            ".reg .b32 p;\nmul.f32 p, a, b;\nadd.f32 d, p, c;",
        )
    ]


def double() -> list[Case]:
    """float64; hardware may keep a NaN's payload, which the ISA leaves open."""
    rows: list[tuple[str, str]] = []
    for mode in _ROUNDINGS:
        rows += [(f"{name}.{mode}.f64", "f64 f64 > f64") for name in ("add", "sub", "mul", "div")]
        rows.append((f"fma.{mode}.f64", "f64 f64 f64 > f64"))
        rows += [(f"{name}.{mode}.f64", "f64 > f64") for name in ("rcp", "sqrt")]
    rows += [(f"{name}.f64", "f64 f64 > f64") for name in ("add", "mul", "min", "max", "copysign")]
    rows += [(f"{name}.f64", "f64 > f64") for name in ("abs", "neg")]
    rows += [(f"testp.{what}.f64", "f64 > pred") for what in ("finite", "number", "normal", "subnormal")]
    return [case("float64", *row, rule=VALUE) for row in rows]


def half() -> list[Case]:
    """float16 and bfloat16, single and packed."""
    rows: list[tuple[str, str]] = []
    for kind in ("f16", "f16x2"):
        for flush in ("", ".ftz"):
            for sat in ("", ".sat"):
                rows += [
                    (f"{name}{flush}{sat}.{kind}", f"{kind} {kind} > {kind}")
                    for name in ("add", "sub", "mul")
                ]
                rows.append((f"fma.rn{flush}{sat}.{kind}", f"{kind} {kind} {kind} > {kind}"))
            rows.append((f"fma.rn{flush}.relu.{kind}", f"{kind} {kind} {kind} > {kind}"))
            rows += [(f"{name}{flush}.{kind}", f"{kind} > {kind}") for name in ("neg", "abs")]
            for name in ("min", "max"):
                rows += [(f"{name}{flush}{nan}{sign}.{kind}", f"{kind} {kind} > {kind}")
                         for nan in ("", ".NaN") for sign in ("", ".xorsign.abs")]  # fmt: skip
        rows.append((f"add.rn.{kind}", f"{kind} {kind} > {kind}"))
    for kind in ("bf16", "bf16x2"):
        rows += [(f"{name}.rn.{kind}", f"{kind} {kind} > {kind}") for name in ("add", "sub", "mul")]
        rows += [(f"fma.rn{relu}.{kind}", f"{kind} {kind} {kind} > {kind}") for relu in ("", ".relu")]
        rows += [(f"{name}.{kind}", f"{kind} > {kind}") for name in ("neg", "abs")]
        for name in ("min", "max"):
            rows += [(f"{name}{nan}{sign}.{kind}", f"{kind} {kind} > {kind}")
                     for nan in ("", ".NaN") for sign in ("", ".xorsign.abs")]  # fmt: skip
    return [case("half", *row) for row in rows] + [
        case(
            "half",
            "mul.f16 then add",
            "f16 f16 f16 > f16",
            ".reg .b16 p;\nmul.f16 p, a, b;\nadd.f16 d, p, c;",
        ),
    ]
