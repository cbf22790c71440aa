"""Integer arithmetic and bits (PTX ISA, "Integer Arithmetic Instructions", "Logic and Shift Instructions")."""

from __future__ import annotations

from suite.cases import Case, case

_ALL = ("u16", "s16", "u32", "s32", "u64", "s64")
_WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def arithmetic() -> list[Case]:
    """Sums, products, quotients, extremes, packed and extended forms."""
    rows: list[tuple[str, str, str]] = []
    for kind in _ALL:
        rows += [
            (f"{name}.{kind}", f"{kind} {kind} > {kind}", "")
            for name in ("add", "sub", "mul.lo", "mul.hi", "min", "max")
        ]
        rows += [(f"{name}.{kind}", f"{kind} {kind}:nonzero > {kind}", "") for name in ("div", "rem")]
        rows += [
            (f"{name}.{kind}", f"{kind} {kind} {kind} > {kind}", "") for name in ("mad.lo", "mad.hi", "sad")
        ]
    for kind in ("s16", "s32", "s64"):
        rows += [(f"{name}.{kind}", f"{kind} > {kind}", "") for name in ("abs", "neg")]
    for kind, wide in _WIDER.items():
        rows.append((f"mul.wide.{kind}", f"{kind} {kind} > {wide}", ""))
        rows.append((f"mad.wide.{kind}", f"{kind} {kind} {wide} > {wide}", ""))
    for kind in ("u32", "s32"):
        rows += [(f"mul24.{half}.{kind}", f"{kind} {kind} > {kind}", "") for half in ("lo", "hi")]
        rows += [(f"mad24.{half}.{kind}", f"{kind} {kind} {kind} > {kind}", "") for half in ("lo", "hi")]
    rows += [(f"{name}.sat.s32", "s32 s32 > s32", "") for name in ("add", "sub")]
    rows += [("mad.hi.sat.s32", "s32 s32 s32 > s32", ""), ("mad24.hi.sat.s32", "s32 s32 s32 > s32", "")]
    rows += [
        (f"{name}.{kind}x2", "b32 b32 > b32", "") for name in ("add", "min", "max") for kind in ("u16", "s16")
    ]
    rows += [
        (f"{name}.{kind} by zero", f"{kind} {kind}:below1 > {kind}", "")
        for name in ("div", "rem")
        for kind in ("u32", "s32", "u64", "s64")
    ]
    rows += [("cvt.pack.sat.u16.s32", "s32 s32 > b32", ""), ("cvt.pack.sat.s16.s32", "s32 s32 > b32", "")]
    rows += [
        (f"cvt.pack.sat.{kind}.s32.b32", "s32 s32 b32 > b32", "")
        for kind in ("u8", "s8", "u4", "s4", "u2", "s2")
    ]
    rows += [("min.relu.s32", "s32 s32 > s32", ""), ("max.relu.s32", "s32 s32 > s32", "")]
    rows += [("min.relu.s16x2", "b32 b32 > b32", ""), ("max.relu.s16x2", "b32 b32 > b32", "")]
    rows += [(f"dp4a.{x}32.{y}32", "b32 b32 b32 > b32", "") for x in "us" for y in "us"]
    rows += [
        (f"dp2a.{half}.{x}32.{y}32", "b32 b32 b32 > b32", "")
        for half in ("lo", "hi")
        for x in "us"
        for y in "us"
    ]
    return [case("integers", *row) for row in rows] + _carries()


def _carries() -> list[Case]:
    rows = [
        ("add.cc.u32 chain", "b32*2:random b32*2:random > b32*3",
         "add.cc.u32 d0, a0, b0;\naddc.cc.u32 d1, a1, b1;\naddc.u32 d2, 0, 0;"),
        ("add.cc.u32 edges", "u32 u32 > b32*2", "add.cc.u32 d0, a, b;\naddc.u32 d1, a, b;"),
        ("sub.cc.u32 chain", "b32*2:random b32*2:random > b32*3",
         "sub.cc.u32 d0, a0, b0;\nsubc.cc.u32 d1, a1, b1;\nsubc.u32 d2, 0, 0;"),
        ("sub.cc.u32 edges", "u32 u32 > b32*2", "sub.cc.u32 d0, a, b;\nsubc.u32 d1, a, b;"),
        ("add.cc.u64", "u64 u64 > u64*2", "add.cc.u64 d0, a, b;\naddc.u64 d1, a, b;"),
        ("sub.cc.u64", "u64 u64 > u64*2", "sub.cc.u64 d0, a, b;\nsubc.u64 d1, a, b;"),
        ("mad.lo.cc.u32", "u32 u32 u32 > b32*2", "mad.lo.cc.u32 d0, a, b, c;\nmadc.hi.u32 d1, a, b, c;"),
        ("mad.hi.cc.u32", "u32 u32 u32 > b32*2", "mad.hi.cc.u32 d0, a, b, c;\naddc.u32 d1, 0, 0;"),
        ("madc.lo.cc.s32", "s32 s32 s32 > b32*3",
         "add.cc.u32 d0, a, b;\nmadc.lo.cc.s32 d1, a, b, c;\nmadc.hi.s32 d2, a, b, c;"),
    ]  # fmt: skip
    return [case("integers", *row) for row in rows]


def bits() -> list[Case]:
    """Logic, shifts, counting, fields and permutations."""
    rows: list[tuple[str, str, str]] = []
    for kind in ("b16", "b32", "b64"):
        rows += [(f"{name}.{kind}", f"{kind} {kind} > {kind}", "") for name in ("and", "or", "xor")]
        rows += [(f"{name}.{kind}", f"{kind} > {kind}", "") for name in ("not", "cnot")]
        rows += [(f"shl.{kind}", f"{kind} u32:shift > {kind}", "")]
        rows += [(f"shr.{sign}{kind[1:]}", f"{kind} u32:shift > {kind}", "") for sign in "us"]
    rows += [(f"{name}.pred", "pred pred > pred", "") for name in ("and", "or", "xor")] + [
        ("not.pred", "pred > pred", "")
    ]
    rows += [
        (f"lop3.b32 0x{table:02x}", "b32 b32 b32 > b32", f"lop3.b32 d, a, b, c, 0x{table:02x};")
        for table in (0x00, 0x1A, 0x80, 0xFE, 0xF8, 0x96, 0xE8, 0xC0, 0x3C, 0xFF)
    ]
    rows += [
        (f"shf.{way}.{mode}.b32", "b32 b32 u32:shift > b32", "") for way in "lr" for mode in ("clamp", "wrap")
    ]
    for name in ("popc", "clz"):
        rows += [(f"{name}.b32", "b32 > b32", ""), (f"{name}.b64", "b64 > b32", "")]
    rows += [("brev.b32", "b32 > b32", ""), ("brev.b64", "b64 > b64", "")]
    for kind in ("u32", "s32", "u64", "s64"):
        rows += [(f"bfind.{kind}", f"{kind} > b32", ""), (f"bfind.shiftamt.{kind}", f"{kind} > b32", "")]
        rows.append((f"bfe.{kind}", f"{kind} u32:fields u32:fields > {kind}", ""))
    rows += [(f"bfi.{kind}", f"{kind} {kind} u32:fields u32:fields > {kind}", "") for kind in ("b32", "b64")]
    rows.append(("prmt.b32", "b32 b32 b32:random > b32", ""))
    rows += [
        (f"prmt.b32.{mode}", "b32 b32 u32:mode > b32", "")
        for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    ]
    rows.append(
        ("fns.b32", "b32:random u32:below32 s32:below7 > b32", "sub.s32 c, c, 3;\nfns.b32 d, a, b, c;")
    )
    rows += [
        (f"szext.{mode}.{kind}", f"{kind} u32:shift > {kind}", "")
        for mode in ("clamp", "wrap")
        for kind in ("u32", "s32")
    ]
    rows += [(f"bmsk.{mode}.b32", "u32:shift u32:fields > b32", "") for mode in ("clamp", "wrap")]
    rows += [
        ("mov.b32 halves", "b32 > b16*2", "mov.b32 {d1, d0}, a;"),
        ("mov.b64 halves", "b64 > b32*2", "mov.b64 {d1, d0}, a;"),
        ("mov.b64 quarters", "b64 > b16*4", "mov.b64 {d3, d1, d2, d0}, a;"),
        ("mov.b32 joined", "b16 b16 > b32", "mov.b32 d, {b, a};"),
        ("mov.b64 joined", "b32 b32 > b64", "mov.b64 d, {b, a};"),
        ("mov.b64 of four", "b16*4:random > b64", "mov.b64 d, {a3, a1, a0, a2};"),
    ]
    return [case("bits", *row) for row in rows]


def comparisons() -> list[Case]:
    """``setp``, ``set``, ``selp``, ``slct`` (PTX ISA, "Comparison and Selection Instructions")."""
    rows: list[tuple[str, str, str]] = []
    for kind in _ALL:
        signs = (
            ("eq", "ne", "lt", "le", "gt", "ge")
            if kind[0] == "s"
            else ("eq", "ne", "lo", "ls", "hi", "hs", "lt", "ge")
        )
        rows += [(f"setp.{sign}.{kind}", f"{kind} {kind} > pred", "") for sign in signs]
    rows += [
        (f"setp.{sign}.b{bits}", f"b{bits} b{bits} > pred", "")
        for sign in ("eq", "ne")
        for bits in (16, 32, 64)
    ]
    ordered = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
    for kind in ("f32", "f64", "f16", "bf16"):
        rows += [(f"setp.{sign}.{kind}", f"{kind} {kind} > pred", "") for sign in ordered]
    rows += [
        (f"setp.{sign}.ftz.{kind}", f"{kind} {kind} > pred", "")
        for sign in ("eq", "lt", "geu")
        for kind in ("f32", "f16")
    ]
    pair = ".reg .pred p, q;\nsetp.{} p|q, a, b;\nselp.b32 d0, 1, 0, p;\nselp.b32 d1, 1, 0, q;"
    rows += [
        (f"setp.{form} both", f"{form[3:]} {form[3:]} > b32*2", pair.format(form))
        for form in ("lt.s32", "ge.f32", "eq.f64")
    ]
    for join in ("and", "or", "xor"):
        rows.append((f"setp.lt.{join}.s32", "s32 s32 pred > b32*2",
                     f".reg .pred p, q;\nsetp.lt.{join}.s32 p|q, a, b, c;\nselp.b32 d0, 1, 0, p;\nselp.b32 d1, 1, 0, q;"))  # fmt: skip
        rows.append(
            (f"setp.gt.{join}.f32 negated", "f32 f32 pred > pred", f"setp.gt.{join}.f32 d, a, b, !c;")
        )
    packed = ".reg .pred p, q;\nsetp.{} p|q, a, b;\nselp.b32 d0, 1, 0, p;\nselp.b32 d1, 1, 0, q;"
    rows += [(f"setp.{sign}.{kind}", f"{kind} {kind} > b32*2", packed.format(f"{sign}.{kind}"))
             for sign in ("lt", "neu", "nan") for kind in ("f16x2", "bf16x2")]  # fmt: skip
    rows += [(f"set.{sign}.{made}.{kind}", f"{kind} {kind} > b32", "")
             for sign, kind in (("lt", "s32"), ("geu", "f32"), ("eq", "f64"), ("hi", "u16")) for made in ("u32", "s32", "f32")]  # fmt: skip
    rows += [
        ("set.lt.and.u32.s32", "s32 s32 pred > b32", ""),
        ("set.gt.f16x2.f16x2", "f16x2 f16x2 > b32", ""),
    ]
    rows += [("set.leu.bf16x2.bf16x2", "bf16x2 bf16x2 > b32", ""), ("set.ne.f16.f16", "f16 f16 > b16", "")]
    rows += [("set.le.u32.f16", "f16 f16 > b32", ""), ("set.gtu.u16.bf16", "bf16 bf16 > b16", "")]
    rows += [(f"selp.{kind}", f"{kind} {kind} pred > {kind}", "")
             for kind in ("b16", "b32", "b64", "u16", "s32", "u64", "f32", "f64")]  # fmt: skip
    rows += [
        (f"slct.{kind}.s32", f"{kind} {kind} s32 > {kind}", "")
        for kind in ("b16", "u32", "b64", "f32", "f64")
    ]
    rows += [("slct.u32.f32", "u32 u32 f32 > u32", ""), ("slct.ftz.s32.f32", "s32 s32 f32 > s32", "")]
    return [case("comparisons", *row) for row in rows]
