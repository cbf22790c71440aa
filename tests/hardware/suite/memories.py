"""Loads, stores, atomics, asynchronous copies and matrix moves (PTX ISA, "Data Movement and Conversion")."""

from __future__ import annotations

from suite.cases import Case, case

_AT = "mad.wide.u32 at, t, {}, src;\n"
_PLACE = ".reg .b32 p;\nmad.lo.u32 p, i, {}, sm;\n"


def _several(count: int) -> str:
    return "d" if count == 1 else "{" + ", ".join(f"d{index}" for index in range(count)) + "}"


def loads_and_stores() -> list[Case]:
    """Every width and vector form, and the hints, which change nothing but speed."""
    made: list[Case] = []

    def add(name: str, kinds: str, text: str, *, stores: bool = True) -> None:
        made.append(case("memory", name, kinds, text, loads=False, stores=stores))

    for bits in (16, 32, 64):
        for count in (1, 2, 4) if bits < 64 else (1, 2):
            vector = f".v{count}" if count > 1 else ""
            kinds = f"b{bits}*{count}:random > b{bits}*{count}"
            load = f"ld.SPACE{vector}.b{bits} {_several(count)}, [PLACE];"
            size = bits // 8 * count
            add(
                f"ld.global{vector}.b{bits}",
                kinds,
                _AT.format(size) + load.replace("SPACE", "global").replace("PLACE", "at"),
            )
            own = [f"a{index}" for index in range(count)] if count > 1 else ["a"]
            written = own[0] if count == 1 else "{" + ", ".join(own) + "}"
            place = _PLACE.format(size)
            made.append(case("memory", f"st.shared{vector}.b{bits}", kinds,
                             f"{place}st.shared{vector}.b{bits} [p], {written};\n{load.replace('SPACE', 'shared').replace('PLACE', 'p')}\nbar.sync 0;"))  # fmt: skip
            made.append(case("memory", f"st.global{vector}.b{bits}", kinds,
                             f"mad.wide.u32 at, t, {size}, dst;\nst.global{vector}.b{bits} [at], {written};", stores=False))  # fmt: skip
    for kind in ("u8", "s8", "u16", "s16"):
        width = int(kind[1:]) // 8
        add(
            f"ld.global.{kind}",
            f"{kind}:random > s32",
            _AT.format(width) + f".reg .b32 w;\nld.global.{kind} w, [at];\nmov.b32 d, w;",
        )
    add("ld.global.v4.u8", "u8*4:random > u8*4", _AT.format(4) + "ld.global.v4.u8 {d0, d1, d2, d3}, [at];")
    made.append(case("memory", "st.global.u8", "u8*4:random > u8*4",
                     "mad.wide.u32 at, t, 4, dst;\nst.global.v4.u8 [at], {a3, a2, a1, a0};", stores=False))  # fmt: skip
    for hint in ("ca", "cg", "cs", "lu", "cv"):
        add(f"ld.global.{hint}.b32", "b32:random > b32", _AT.format(4) + f"ld.global.{hint}.b32 d, [at];")
    for hint in ("wb", "cg", "cs", "wt"):
        made.append(case("memory", f"st.global.{hint}.b32", "b32 > b32",
                         f"mad.wide.u32 at, t, 4, dst;\nst.global.{hint}.b32 [at], a;", stores=False))  # fmt: skip
    for form in (
        "nc",
        "L1::evict_last",
        "L1::no_allocate",
        "L2::64B",
        "L2::128B",
        "L2::256B",
        "nc.L1::evict_first",
    ):
        add(
            f"ld.global.{form}.v4.b32",
            "b32*4:random > b32*4",
            _AT.format(16) + f"ld.global.{form}.v4.b32 {_several(4)}, [at];",
        )
    add("ld.global.L2::cache_hint", "b32:random > b32",
        _AT.format(4) + ".reg .b64 policy;\ncreatepolicy.fractional.L2::evict_last.b64 policy, 1.0;\n"
        "ld.global.L2::cache_hint.b32 d, [at], policy;")  # fmt: skip
    for form in ("volatile.global", "relaxed.gpu.global", "acquire.sys.global", "relaxed.cta.global"):
        add(f"ld.{form}.b32", "b32:random > b32", _AT.format(4) + f"ld.{form}.b32 d, [at];")
    for form in ("volatile.global", "relaxed.gpu.global", "release.sys.global"):
        made.append(
            case(
                "memory",
                f"st.{form}.b32",
                "b32 > b32",
                f"mad.wide.u32 at, t, 4, dst;\nst.{form}.b32 [at], a;",
                stores=False,
            )
        )
    add(
        "ld generic",
        "b32*2:random > b32*2",
        _AT.format(8) + "cvta.global.u64 at, at;\nld.v2.b32 {d0, d1}, [at];",
    )
    made.append(case("memory", "ld generic of shared", "b32 > b32",
                     _PLACE.format(4) + ".reg .b64 wide;\ncvt.u64.u32 wide, p;\ncvta.shared.u64 wide, wide;\nst.b32 [wide], a;\n"
                     "ld.shared.b32 d, [p];\nbar.sync 0;"))  # fmt: skip
    made.append(case("memory", "isspacep", "b32 > b32*2",
                     ".reg .b64 wide;\n.reg .pred q;\ncvt.u64.u32 wide, sm;\ncvta.shared.u64 wide, wide;\nisspacep.shared q, wide;\n"
                     "selp.b32 d0, 1, 0, q;\nisspacep.global q, src;\nselp.b32 d1, 1, 0, q;"))  # fmt: skip
    made.append(case("memory", "ld.local", "b32*4:random u32:mode > b32",
                     ".local .align 16 .b8 own[16];\n.reg .b32 p;\nmov.u32 p, own;\nst.local.v4.b32 [p], {a0, a1, a2, a3};\n"
                     "mad.lo.u32 p, b, 4, p;\nld.local.b32 d, [p];"))  # fmt: skip
    add(
        "prefetch",
        "b32:random > b32",
        _AT.format(4) + "prefetch.global.L2 [at];\nprefetch.global.L1 [at];\nld.global.b32 d, [at];",
    )
    add("ld gather", "b32:random > b32",
        ".reg .b32 where;\nmul.lo.u32 where, t, 197;\nadd.u32 where, where, 31;\nand.b32 where, where, 511;\n"
        "mad.wide.u32 at, where, 4, src;\nld.global.b32 d, [at];")  # fmt: skip
    return made


def atomics() -> list[Case]:
    """One thread an address, with the old value; many threads an address, where the order cannot matter."""
    made: list[Case] = []
    forms = [(name, kind) for name in ("add", "min", "max") for kind in ("u32", "s32", "u64", "s64")
             if (name, kind) != ("add", "s64")]  # fmt: skip
    forms += [(name, kind) for name in ("and", "or", "xor", "exch") for kind in ("b32", "b64")]
    forms += [("inc", "u32"), ("dec", "u32")]
    for name, kind in forms:
        width = int(kind[1:]) // 8
        made.append(
            case(
                "atomics",
                f"atom.global.{name}.{kind}",
                f"{kind} {kind} > {kind}*2",
                _alone("global", name, kind, width),
            )
        )
        made.append(
            case(
                "atomics",
                f"atom.shared.{name}.{kind}",
                f"{kind} {kind} > {kind}*2",
                _alone("shared", name, kind, width),
            )
        )
        if name not in {"exch", "inc", "dec"}:
            crowd = f".reg .b32 low;\nand.b32 low, t, 7;\nmad.wide.u32 at, low, {width}, dst;\nred.global.{name}.{kind} [at], a;"
            made.append(case("atomics", f"red.global.{name}.{kind}", f"{kind} > {kind}", crowd, stores=False))
            made.append(
                case(
                    "atomics",
                    f"red.shared.{name}.{kind}",
                    f"{kind} > {kind}",
                    _shared_crowd(name, kind, width),
                )
            )
    for kind, width in (
        ("f32", 4),
        ("f64", 8),
        ("noftz.f16x2", 4),
        ("noftz.bf16x2", 4),
        ("noftz.f16", 2),
        ("noftz.bf16", 2),
    ):
        held = kind.rpartition(".")[2]
        made.append(
            case(
                "atomics",
                f"atom.global.add.{kind}",
                f"{held} {held} > {held}*2",
                _alone("global", "add", kind, width),
            )
        )
        crowd = f".reg .b32 low;\nand.b32 low, t, 7;\nmad.wide.u32 at, low, {width}, dst;\nred.global.add.{kind} [at], a;"
        made.append(
            case("atomics", f"red.global.add.{kind} whole", f"{held}:whole > {held}", crowd, stores=False)
        )
    for kind, width in (("f32", 4), ("f64", 8)):
        made.append(
            case(
                "atomics",
                f"atom.shared.add.{kind}",
                f"{kind} {kind} > {kind}*2",
                _alone("shared", "add", kind, width),
            )
        )
    for bits in (16, 32, 64):
        for space in ("global", "shared"):
            made.append(case("atomics", f"atom.{space}.cas.b{bits}", f"b{bits}:few b{bits}:few b{bits} > b{bits}*2",
                             _alone(space, "cas", f"b{bits}", bits // 8, "b, c")))  # fmt: skip
    for form in ("relaxed.cta.global", "acq_rel.gpu.global", "release.sys.global"):
        made.append(
            case(
                "atomics",
                f"atom.{form}.add.u32",
                "u32 u32 > u32*2",
                _alone("global", "add", "u32", 4).replace("atom.global", f"atom.{form}"),
            )
        )
    for kind in ("noftz.f16x2", "noftz.bf16x2"):
        held = kind.rpartition(".")[2]
        made.append(
            case(
                "atomics",
                f"atom.shared.add.{kind}",
                f"{held} {held} > {held}*2",
                _alone("shared", "add", kind, 4),
            )
        )
    made.append(case("atomics", "red.global.add.v2.f32 whole", "f32*2:whole > f32*2",
                     "mad.wide.u32 at, t, 8, dst;\nred.global.add.v2.f32 [at], {a0, a1};", stores=False))  # fmt: skip
    made.append(case("atomics", "red.global.add.v4.f32 whole", "f32*4:whole > f32*4",
                     "mad.wide.u32 at, t, 16, dst;\nred.global.v4.f32.add [at], {a0, a1, a2, a3};", stores=False))  # fmt: skip
    return made


def _alone(space: str, name: str, kind: str, width: int, given: str = "b") -> str:
    """Write ``a``, act on it with ``b``; ``d0`` is what is there then, ``d1`` what the atomic returned."""
    bits = 8 * width
    if space == "global":
        return (
            f"mad.wide.u32 at, t, {width}, dst;\nst.global.b{bits} [at], a;\n"
            f"atom.global.{name}.{kind} d1, [at], {given};\nld.global.b{bits} d0, [at];"
        )
    return (
        _PLACE.format(width) + f"st.shared.b{bits} [p], a;\natom.shared.{name}.{kind} d1, [p], {given};\n"
        f"ld.shared.b{bits} d0, [p];\nbar.sync 0;"
    )


def _shared_crowd(name: str, kind: str, width: int) -> str:
    """Lane groups of a block meet at eight addresses that begin as zero."""
    bits = 8 * width
    zero = ".reg .b64 none;\nmov.b64 none, 0;" if bits == 64 else ".reg .b32 none;\nmov.b32 none, 0;"
    return (
        f"{zero}\n.reg .b32 low;\n.reg .b32 p;\nand.b32 low, i, 7;\nmad.lo.u32 p, low, {width}, sm;\nst.shared.b{bits} [p], none;\n"
        f"bar.sync 0;\nred.shared.{name}.{kind} [p], a;\nbar.sync 0;\nld.shared.b{bits} d, [p];\nbar.sync 0;"
    )


def asynchronous() -> list[Case]:
    """``cp.async`` in every size, with zero fill, in groups."""
    made: list[Case] = []
    finish = "cp.async.commit_group;\ncp.async.wait_group 0;\nbar.sync 0;\nxor.b32 p, p, {};\n"
    for form, size in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)):
        count = size // 4
        vector = f".v{count}" if count > 1 else ""
        kinds = f"b32*{count}:random > b32*{count}"
        begin = _AT.format(size) + _PLACE.format(size)
        read = f"ld.shared{vector}.b32 {_several(count)}, [p];\nbar.sync 0;"
        copy = f"cp.async.{form}.shared.global [p], [at], {size}"
        made.append(
            case(
                "asynchronous copies",
                f"cp.async.{form} {size}",
                kinds,
                begin + copy + ";\n" + finish.format(size) + read,
                loads=False,
            )
        )
        filled = f"{begin}mad.wide.u32 src, t, 4, src;\n.reg .b32 length;\nld.global.b32 length, [src+{512 * size}];\n"
        made.append(case("asynchronous copies", f"cp.async.{form} {size} zero fill", f"b32*{count}:random u32:below{size + 1} > b32*{count}",
                         filled + copy + ", length;\n" + finish.format(size) + read, loads=False))  # fmt: skip
    made.append(case("asynchronous copies", "cp.async ignore-src", "b32*4:random > b32*4",
                     _AT.format(16) + _PLACE.format(16) + ".reg .pred q;\nand.b32 lane, lane, 3;\nsetp.eq.u32 q, lane, 1;\n"
                     "cp.async.ca.shared.global [p], [at], 16, q;\n" + finish.format(16)
                     + "ld.shared.v4.b32 {d0, d1, d2, d3}, [p];\nbar.sync 0;", loads=False))  # fmt: skip
    made.append(case("asynchronous copies", "cp.async.wait_all", "b32*4:random > b32*4",
                     _AT.format(16) + _PLACE.format(16) + "cp.async.cg.shared.global [p], [at], 16;\ncp.async.wait_all;\nbar.sync 0;\n"
                     "ld.shared.v4.b32 {d0, d1, d2, d3}, [p];\nbar.sync 0;", loads=False))  # fmt: skip
    made.append(case("asynchronous copies", "cp.async two groups", "b32*2:random > b32*2",
                     _AT.format(4) + _PLACE.format(4) + "cp.async.ca.shared.global [p], [at], 4;\ncp.async.commit_group;\n"
                     "cp.async.ca.shared.global [p+512], [at+2048], 4;\ncp.async.commit_group;\ncp.async.wait_group 1;\n"
                     "ld.shared.b32 d0, [p];\ncp.async.wait_group 0;\nld.shared.b32 d1, [p+512];\nbar.sync 0;", loads=False))  # fmt: skip
    made.append(case("asynchronous copies", "cp.async hints", "b32*4:random > b32*4",
                     _AT.format(16) + _PLACE.format(16) + "cp.async.cg.shared.global.L2::128B [p], [at], 16;\n" + finish.format(16)
                     + "ld.shared.v4.b32 {d0, d1, d2, d3}, [p];\nbar.sync 0;", loads=False))  # fmt: skip
    return made


def matrices() -> list[Case]:
    """``ldmatrix``, ``stmatrix``, ``movmatrix``: rows in a mixed order."""
    made: list[Case] = []
    rows = (
        ".reg .b32 p, w;\nmad.lo.u32 p, i, 16, sm;\nst.shared.v4.b32 [p], {a0, a1, a2, a3};\nbar.sync 0;\nmul.lo.u32 w, lane, 5;\n"
        "and.b32 w, w, 31;\nsub.u32 p, i, lane;\nadd.u32 w, w, p;\nmad.lo.u32 p, w, 16, sm;\n"
    )
    for count in (1, 2, 4):
        for trans in ("", ".trans"):
            matrix = f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"
            listed = "{" + ", ".join(["d"] if count == 1 else [f"d{index}" for index in range(count)]) + "}"
            made.append(case("matrices", f"ldmatrix x{count}{trans}", f"b32*4:random > b32*{count}",
                             f"{rows}{matrix} {listed}, [p];\nbar.sync 0;"))  # fmt: skip
            given = "{" + ", ".join(["a"] if count == 1 else [f"a{index}" for index in range(count)]) + "}"
            store = (
                ".reg .b32 p, w, z;\nmov.b32 z, 0;\nmad.lo.u32 p, i, 16, sm;\nst.shared.v4.b32 [p], {z, z, z, z};\nbar.sync 0;\n"
                "mul.lo.u32 w, lane, 5;\nand.b32 w, w, 31;\nsub.u32 p, i, lane;\nadd.u32 w, w, p;\nmad.lo.u32 p, w, 16, sm;\n"
                f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [p], {given};\nbar.sync 0;\nmad.lo.u32 p, i, 16, sm;\n"
                "ld.shared.v4.b32 {d0, d1, d2, d3}, [p];\nbar.sync 0;"
            )
            made.append(case("matrices", f"stmatrix x{count}{trans}", f"b32*{count}:random > b32*4", store))
    made.append(
        case("matrices", "movmatrix", "b32:random > b32", "movmatrix.sync.aligned.m8n8.trans.b16 d, a;")
    )
    return made
