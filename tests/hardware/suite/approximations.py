"""Approximate instructions with the errors that the PTX ISA documents for them."""

from __future__ import annotations

from suite.cases import Case, Rule, case


def _near(function: str, *, relative: float = 0.0, absolute: float = 0.0, ulps: float = 0.0) -> Rule:
    return Rule(kind="near", function=function, relative=relative, absolute=absolute, ulps=ulps)


def approximations() -> list[Case]:
    """Every approximate instruction of sm_80 to sm_90, on edges and on the range its error is documented for."""
    ex2, lg2, tanh = (
        _near("ex2", ulps=2),
        _near("lg2", relative=2.0**-22, absolute=2.0**-22),
        _near("tanh", relative=2.0**-11),
    )
    root, reciprocal_root = _near("sqrt", relative=2.0**-23), _near("rsqrt", relative=2.0**-22.9)
    rows: list[tuple[str, str, Rule]] = []
    for flush in ("", ".ftz"):
        rows += [
            (f"ex2.approx{flush}.f32", "f32 > f32", ex2),
            (f"ex2.approx{flush}.f32 range", "f32:exponent > f32", ex2),
        ]
        rows += [
            (f"lg2.approx{flush}.f32", "f32 > f32", lg2),
            (f"lg2.approx{flush}.f32 range", "f32:positive > f32", lg2),
        ]
        rows += [(f"rcp.approx{flush}.f32", "f32 > f32", _near("rcp", ulps=1))]
        rows += [
            (f"sqrt.approx{flush}.f32", "f32 > f32", root),
            (f"rsqrt.approx{flush}.f32", "f32 > f32", reciprocal_root),
        ]
        rows += [(f"sqrt.approx{flush}.f32 range", "f32:positive > f32", root)]
        rows += [(f"rsqrt.approx{flush}.f32 range", "f32:positive > f32", reciprocal_root)]
        for name in ("sin", "cos"):
            rows += [(f"{name}.approx{flush}.f32 range", "f32:angle > f32", _near(name, absolute=2.0**-20.5))]
        rows += [(f"div.approx{flush}.f32", "f32 f32 > f32", _near("div.approx", ulps=2))]
        rows += [(f"div.full{flush}.f32", "f32 f32 > f32", _near("div", ulps=2))]
    rows += [("tanh.approx.f32", "f32 > f32", tanh), ("tanh.approx.f32 range", "f32:small > f32", tanh)]
    for kind in ("f16", "f16x2"):
        rows += [(f"ex2.approx.{kind}", f"{kind} > {kind}", _near("ex2", relative=2.0**-9.9))]
        rows += [(f"tanh.approx.{kind}", f"{kind} > {kind}", _near("tanh", absolute=2.0**-10.987))]
        rows += [
            (f"tanh.approx.{kind} range", f"{kind}:small > {kind}", _near("tanh", absolute=2.0**-10.987))
        ]
    for kind in ("bf16", "bf16x2"):
        rows += [(f"ex2.approx.ftz.{kind}", f"{kind} > {kind}", _near("ex2", relative=2.0**-7))]
        rows += [(f"tanh.approx.{kind}", f"{kind} > {kind}", _near("tanh", absolute=2.0**-8))]
        rows += [(f"tanh.approx.{kind} range", f"{kind}:small > {kind}", _near("tanh", absolute=2.0**-8))]
    rows += [("rcp.approx.ftz.f64", "f64 > f64", _near("rcp", relative=2.0**-19))]
    rows += [("rsqrt.approx.f64", "f64 > f64", _near("rsqrt", relative=2.0**-19))]
    rows += [("rsqrt.approx.ftz.f64", "f64 > f64", _near("rsqrt", relative=2.0**-19))]
    return [case("approximations", name, kinds, rule=rule) for name, kinds, rule in rows]
