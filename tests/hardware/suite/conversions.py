"""Conversions (PTX ISA, ``cvt``)."""

from __future__ import annotations

from suite.cases import VALUE, Case, case

_INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
_FLOATS = ("f16", "bf16", "f32", "f64")


def _held(kind: str) -> str:
    """The kind of register that holds an integer: 8 bits lie in 16."""
    return f"{kind[0]}16" if kind[1:] == "8" else kind


def _contains(wide: str, narrow: str) -> bool:
    """Return whether one integer type holds every value of another."""
    wide_bits, narrow_bits = int(wide[1:]), int(narrow[1:])
    if wide[0] == narrow[0]:
        return wide_bits >= narrow_bits
    return wide[0] == "s" and wide_bits > narrow_bits


def integers() -> list[Case]:
    """Between integers, with and without saturation."""
    rows = []
    for made in _INTEGERS:
        for given in _INTEGERS:
            if made == given:
                continue
            signature = f"{_held(given)} > {_held(made)}"
            rows.append((f"cvt.{made}.{given}", signature))
            if not _contains(made, given):  # where every value fits, `.sat` is refused
                rows.append((f"cvt.sat.{made}.{given}", signature))
    return [case("conversions", *row) for row in rows]


def integers_and_floats() -> list[Case]:
    """Floats to integers and back, in every rounding."""
    rows = []
    for kind in _FLOATS:
        for whole in _INTEGERS[2 if kind == "bf16" else 0 :]:  # none between bf16 and 8 bits
            for mode in ("rni", "rzi", "rmi", "rpi"):
                rows.append((f"cvt.{mode}.{whole}.{kind}", f"{kind} > {_held(whole)}"))
            for mode in ("rn", "rz", "rm", "rp"):
                rows.append((f"cvt.{mode}.{kind}.{whole}", f"{_held(whole)} > {kind}"))
        if kind != "bf16":
            rows.append((f"cvt.rzi.sat.u8.{kind}", f"{kind} > u16"))
    rows += [("cvt.rzi.ftz.s32.f32", "f32 > s32"), ("cvt.rpi.ftz.s32.f32", "f32 > s32")]
    rows += [("cvt.rn.sat.f32.s32", "s32 > f32"), ("cvt.rn.sat.f16.s16", "s16 > f16")]
    return [case("conversions", *row) for row in rows]


def floats() -> list[Case]:
    """Between float formats, narrow ones and tf32 among them."""
    rows = []
    for mode in ("rn", "rz", "rm", "rp"):
        rows += [(f"cvt.{mode}.f16.f32", "f32 > f16"), (f"cvt.{mode}.ftz.f16.f32", "f32 > f16")]
        rows += [(f"cvt.{mode}.f32.f64", "f64 > f32"), (f"cvt.{mode}.ftz.f32.f64", "f64 > f32")]
        rows += [(f"cvt.{mode}.f16.f64", "f64 > f16"), (f"cvt.{mode}.sat.f16.f32", "f32 > f16")]
        rows += [(f"cvt.{mode}.bf16.{kind}", f"{kind} > bf16") for kind in ("f16", "f32", "f64")]
        rows += [(f"cvt.{mode}.f16.bf16", "bf16 > f16")]
    rows += [("cvt.f32.f16", "f16 > f32"), ("cvt.f32.bf16", "bf16 > f32"), ("cvt.f64.f32", "f32 > f64")]
    rows += [("cvt.f64.f16", "f16 > f64"), ("cvt.f64.bf16", "bf16 > f64"), ("cvt.ftz.f32.f16", "f16 > f32")]
    rows += [
        ("cvt.sat.f32.f16", "f16 > f32"),
        ("cvt.rn.sat.f32.f64", "f64 > f32"),
        ("cvt.ftz.f64.f32", "f32 > f64"),
    ]
    for kind in ("f16", "f32", "f64"):
        rows += [(f"cvt.{mode}.{kind}.{kind}", f"{kind} > {kind}") for mode in ("rni", "rzi", "rmi", "rpi")]
    rows += [
        ("cvt.rni.ftz.f32.f32", "f32 > f32"),
        ("cvt.sat.f32.f32", "f32 > f32"),
        ("cvt.ftz.sat.f32.f32", "f32 > f32"),
    ]
    for mode in ("rn", "rz"):
        for relu in ("", ".relu"):
            rows += [(f"cvt.{mode}{relu}.{kind}.f32", f"f32 > {kind}") for kind in ("f16", "bf16")]
            rows += [(f"cvt.{mode}{relu}.{kind}.f32", f"f32 f32 > {kind}") for kind in ("f16x2", "bf16x2")]
            rows += [(f"cvt.{mode}{relu}.tf32.f32", "f32 > b32")]
    rows += [("cvt.rna.tf32.f32", "f32 > b32")]
    rows += [(f"cvt.rn.satfinite{relu}.{kind}x2.f32", f"f32 f32 > {kind}x2")
             for kind in ("e4m3", "e5m2") for relu in ("", ".relu")]  # fmt: skip
    rows += [(f"cvt.rn.satfinite{relu}.{kind}x2.f16x2", f"f16x2 > {kind}x2")
             for kind in ("e4m3", "e5m2") for relu in ("", ".relu")]  # fmt: skip
    rows += [(f"cvt.rn{relu}.f16x2.{kind}x2", f"{kind}x2:random > f16x2")
             for kind in ("e4m3", "e5m2") for relu in ("", ".relu")]  # fmt: skip
    return [case("conversions", name, kinds, rule=VALUE if "f64" in kinds else None) for name, kinds in rows]
