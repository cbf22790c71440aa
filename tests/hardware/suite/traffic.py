"""Access patterns whose traffic is known, launched one kernel each: for Nsight Compute on a GPU, and for our counts.

Every kernel has ``BLOCKS`` blocks of ``BLOCK`` threads, reads ``source`` (16 MiB) or shared memory in its pattern, and
stores one 32-bit result a thread, coalesced, so that nothing is dead code.  Its name is part of the kernel's name.
"""

from __future__ import annotations

from dataclasses import dataclass

BLOCKS = 64
"""Blocks of a launch: 16,384 threads, 512 warps."""
BLOCK = 256
"""Threads of a block: 8 warps."""
SOURCE_BYTES = 16 << 20
"""Bytes that a pattern may read."""
TARGET_BYTES = 4 << 20
"""Bytes that it may write; the results take the first 64 KiB."""
SHARED_BYTES = 48 << 10
"""Shared memory of a block."""

_GLOBAL, _SHARED = "global", "shared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One kernel."""

    name: str
    """Lower-case letters, digits and underscores."""
    group: str
    """Patterns of a group are profiled by one run of Nsight Compute: ``global``, ``shared``, ``matrix``."""
    text: str
    """PTX that leaves a result in ``d``; ``t``, ``i``, ``lane``, ``sm``, ``src``, ``dst``, ``at`` as in :mod:`suite.cases`."""


def block_of(pattern: Pattern) -> str:
    """The pattern as an inline-assembly block: ``$0`` source, ``$1`` target, ``$2`` thread, ``$3`` shared memory."""
    return "\n".join([
        "{", ".reg .b64 src, dst, at;", ".reg .b32 t, i, lane, sm, d, w, p, q, r, s;", ".reg .b64 wide;", ".reg .b16 h;",
        ".reg .pred on;", "mov.b64 src, $0;", "mov.b64 dst, $1;", "mov.b32 t, $2;", f"and.b32 i, t, {BLOCK - 1};",
        "and.b32 lane, t, 31;", "mov.b32 sm, $3;", "mov.b32 d, 0;", pattern.text.strip(),
        "mad.wide.u32 at, t, 4, dst;", "st.global.b32 [at], d;", "}",
    ])  # fmt: skip


def patterns() -> list[Pattern]:
    """All of them."""
    return [
        *_loads(),
        *_stores(),
        *_atomics(),
        *_copies(),
        *_shared(),
        *_shared_atomics(),
        *_matrices(),
        *_products(),
    ]


def _loads() -> list[Pattern]:
    rows = {
        f"load_stride_{stride}": f"mul.lo.u32 w, t, {stride};\nmad.wide.u32 at, w, 4, src;\nld.global.b32 d, [at];"
        for stride in (1, 2, 4, 8, 16, 32)
    }
    rows |= {
        f"load_offset_{offset}": f"mad.wide.u32 at, t, 4, src;\nld.global.b32 d, [at+{offset}];"
        for offset in (4, 16, 32, 64)
    }
    rows["load_64_bits"] = "mad.wide.u32 at, t, 8, src;\nld.global.b64 wide, [at];\ncvt.u32.u64 d, wide;"
    rows["load_128_bits"] = (
        "mad.wide.u32 at, t, 16, src;\nld.global.v4.b32 {d, q, r, s}, [at];\nadd.u32 d, d, q;\nadd.u32 d, d, r;\nadd.u32 d, d, s;"
    )
    rows["load_128_bits_apart"] = rows["load_128_bits"].replace("t, 16", "t, 64")
    rows["load_128_bits_offset"] = rows["load_128_bits"].replace("[at]", "[at+16]")
    rows["load_16_bits"] = "mad.wide.u32 at, t, 2, src;\nld.global.b16 h, [at];\ncvt.u32.u16 d, h;"
    rows["load_8_bits"] = "mad.wide.u32 at, t, 1, src;\nld.global.u8 d, [at];"
    rows["load_same_address"] = "ld.global.b32 d, [src];"
    rows["load_same_address_a_warp"] = (
        "sub.u32 w, t, lane;\nmad.wide.u32 at, w, 4, src;\nld.global.b32 d, [at];"
    )
    rows["load_reversed"] = "xor.b32 w, t, 31;\nmad.wide.u32 at, w, 4, src;\nld.global.b32 d, [at];"
    rows["load_gather"] = (
        "mul.lo.u32 w, t, 2654435761;\nshr.u32 w, w, 10;\nmad.wide.u32 at, w, 4, src;\nld.global.b32 d, [at];"
    )
    rows["load_few_lanes"] = (
        "setp.lt.u32 on, lane, 5;\nmad.wide.u32 at, t, 4, src;\n@on ld.global.b32 d, [at];"
    )
    rows["load_odd_lanes"] = (
        "and.b32 w, t, 1;\nsetp.eq.u32 on, w, 1;\nmad.wide.u32 at, t, 4, src;\n@on ld.global.b32 d, [at];"
    )
    rows["load_twice"] = (
        "mad.wide.u32 at, t, 4, src;\nld.volatile.global.b32 d, [at];\nld.volatile.global.b32 q, [at];\nadd.u32 d, d, q;"
    )
    rows["load_read_only"] = "mad.wide.u32 at, t, 4, src;\nld.global.nc.b32 d, [at];"
    return [Pattern(name=name, group=_GLOBAL, text=text) for name, text in rows.items()]


def _stores() -> list[Pattern]:
    far = "add.s64 at, at, 65536;\n"
    rows = {
        f"store_stride_{stride}": f"mul.lo.u32 w, t, {stride};\nmad.wide.u32 at, w, 4, dst;\n{far}st.global.b32 [at], t;"
        for stride in (1, 2, 8, 32)
    }
    rows["store_offset_4"] = f"mad.wide.u32 at, t, 4, dst;\n{far}st.global.b32 [at+4], t;"
    rows["store_64_bits"] = f"mad.wide.u32 at, t, 8, dst;\n{far}st.global.v2.b32 [at], {{t, i}};"
    rows["store_128_bits"] = f"mad.wide.u32 at, t, 16, dst;\n{far}st.global.v4.b32 [at], {{t, i, t, i}};"
    rows["store_16_bits"] = f"cvt.u16.u32 h, i;\nmad.wide.u32 at, t, 2, dst;\n{far}st.global.b16 [at], h;"
    rows["store_few_lanes"] = (
        f"setp.lt.u32 on, lane, 5;\nmad.wide.u32 at, t, 4, dst;\n{far}@on st.global.b32 [at], t;"
    )
    return [Pattern(name=name, group=_GLOBAL, text=text) for name, text in rows.items()]


def _atomics() -> list[Pattern]:
    far = "add.s64 at, at, 65536;\n"
    rows = {}
    for name, where in (
        ("distinct", "mad.wide.u32 at, t, 4, dst;"), ("stride_8", "mul.lo.u32 w, t, 8;\nmad.wide.u32 at, w, 4, dst;"),
        ("eight_places", "and.b32 w, t, 7;\nmad.wide.u32 at, w, 4, dst;"), ("one_place", "mov.b64 at, dst;"),
    ):  # fmt: skip
        rows[f"atomic_{name}"] = f"{where}\n{far}atom.global.add.u32 d, [at], i;"
        rows[f"reduction_{name}"] = f"{where}\n{far}red.global.add.u32 [at], i;"
    rows["atomic_exchange"] = f"mad.wide.u32 at, t, 4, dst;\n{far}atom.global.exch.b32 d, [at], i;"
    rows["reduction_float"] = f"mad.wide.u32 at, t, 4, dst;\n{far}red.global.add.f32 [at], 0f3F800000;"
    return [Pattern(name=name, group=_GLOBAL, text=text) for name, text in rows.items()]


def _copies() -> list[Pattern]:
    done = "cp.async.commit_group;\ncp.async.wait_group 0;\nbar.sync 0;\nld.shared.b32 d, [p];"
    rows = {}
    for form, size in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)):
        rows[f"copy_{form}_{size}"] = (
            f"mad.lo.u32 p, i, {size}, sm;\nmad.wide.u32 at, t, {size}, src;\n"
            f"cp.async.{form}.shared.global [p], [at], {size};\n{done}"
        )
    rows["copy_ca_4_stride_8"] = rows["copy_ca_4"].replace(
        "mad.wide.u32 at, t, 4", "mul.lo.u32 w, t, 8;\nmad.wide.u32 at, w, 4"
    )
    rows["copy_cg_16_apart"] = rows["copy_cg_16"].replace("at, t, 16", "at, t, 64")
    rows[
        "copy_cg_16_in_columns"
    ] = (  # eight threads a 128-byte row of shared memory, rows of 512 bytes in global memory
        "and.b32 w, i, 7;\nshr.u32 q, t, 3;\nmul.lo.u32 q, q, 32;\nadd.u32 q, q, w;\nmad.wide.u32 at, q, 16, src;\n"
        f"mad.lo.u32 p, i, 16, sm;\ncp.async.cg.shared.global [p], [at], 16;\n{done}"
    )
    rows["copy_cg_16_conflicts"] = (  # threads of a warp write shared memory 128 bytes apart
        "and.b32 w, i, 31;\nshr.u32 q, i, 5;\nmul.lo.u32 w, w, 128;\nmad.lo.u32 w, q, 16, w;\nadd.u32 p, sm, w;\n"
        f"mad.wide.u32 at, t, 16, src;\ncp.async.cg.shared.global [p], [at], 16;\n{done}"
    )
    return [Pattern(name=name, group="matrix", text=text) for name, text in rows.items()]


_FILL = "mad.lo.u32 p, i, 16, sm;\nst.shared.v4.b32 [p], {t, i, lane, t};\nst.shared.v4.b32 [p+4096], {t, i, lane, t};\nbar.sync 0;\n"
"""Writes the first 8 KiB of shared memory, 128 bits a thread, without a conflict: 2 · 8 warps · 4 wavefronts a block."""


def _shared() -> list[Pattern]:
    rows = {"fill": _FILL}
    warp = "shr.u32 q, i, 5;\n"
    for stride in (1, 2, 3, 4, 8, 16, 32, 33):
        where = f"{warp}mad.lo.u32 w, lane, {stride}, q;\nmad.lo.u32 p, w, 4, sm;\n"
        rows[f"load_stride_{stride}"] = f"{_FILL}{where}ld.shared.b32 d, [p];"
        if stride in {1, 2, 32}:
            rows[f"store_stride_{stride}"] = (
                f"mul.lo.u32 w, i, {stride};\nmad.lo.u32 p, w, 4, sm;\nst.shared.b32 [p], t;"
            )
    rows["load_same_word"] = f"{_FILL}{warp}mad.lo.u32 p, q, 4, sm;\nld.shared.b32 d, [p];"
    rows["load_two_words_a_bank"] = (
        f"{_FILL}and.b32 w, lane, 1;\nmad.lo.u32 p, w, 128, sm;\nld.shared.b32 d, [p];"
    )
    rows["load_16_bits"] = f"{_FILL}mad.lo.u32 p, i, 2, sm;\nld.shared.u16 h, [p];\ncvt.u32.u16 d, h;"
    rows["load_8_bits"] = f"{_FILL}add.u32 p, i, sm;\nld.shared.u8 d, [p];"
    both = "add.u32 d, r, s;"
    for name, stride in (("64_bits", 8), ("64_bits_apart", 16), ("64_bits_far", 128)):
        rows[f"load_{name}"] = (
            f"{_FILL}mad.lo.u32 p, lane, {stride}, sm;\nld.shared.v2.b32 {{r, s}}, [p];\n{both}"
        )
    rows["load_64_bits_same"] = (
        f"{_FILL}shr.u32 w, lane, 2;\nmad.lo.u32 p, w, 8, sm;\nld.shared.v2.b32 {{r, s}}, [p];\n{both}"
    )
    rows["load_64_bits_mirrored"] = (
        f"{_FILL}and.b32 w, lane, 15;\nmad.lo.u32 p, w, 8, sm;\nld.shared.v2.b32 {{r, s}}, [p];\n{both}"
    )
    four = "ld.shared.v4.b32 {d, q, r, s}, [p];\nadd.u32 d, d, q;\nadd.u32 r, r, s;\nadd.u32 d, d, r;"
    for name, stride in (
        ("128_bits", 16),
        ("128_bits_apart", 32),
        ("128_bits_far", 128),
        ("128_bits_padded", 144),
    ):
        rows[f"load_{name}"] = f"{_FILL}mad.lo.u32 p, lane, {stride}, sm;\n{four}"
    rows["load_128_bits_same"] = f"{_FILL}mov.b32 p, sm;\n{four}"
    rows["load_128_bits_pairs"] = f"{_FILL}shr.u32 w, lane, 1;\nmad.lo.u32 p, w, 16, sm;\n{four}"
    rows["load_128_bits_mirrored"] = f"{_FILL}and.b32 w, lane, 7;\nmad.lo.u32 p, w, 16, sm;\n{four}"
    rows["store_64_bits_apart"] = "mad.lo.u32 p, i, 16, sm;\nst.shared.v2.b32 [p], {t, i};"
    rows["store_128_bits_apart"] = "mad.lo.u32 p, i, 32, sm;\nst.shared.v4.b32 [p], {t, i, t, i};"
    rows["store_same_word"] = f"{warp}mad.lo.u32 p, q, 4, sm;\nst.shared.b32 [p], q;"
    rows["load_few_lanes"] = (
        f"{_FILL}setp.lt.u32 on, lane, 5;\nmul.lo.u32 w, lane, 32;\nmad.lo.u32 p, w, 4, sm;\n@on ld.shared.b32 d, [p];"
    )
    return [Pattern(name=f"shared_{name}", group=_SHARED, text=text) for name, text in rows.items()]


def _shared_atomics() -> list[Pattern]:
    rows = {}
    for name, where in (("distinct", "mad.lo.u32 p, i, 4, sm;"), ("eight_places", "and.b32 w, i, 7;\nmad.lo.u32 p, w, 4, sm;"),
                        ("one_place", "mov.b32 p, sm;"), ("one_bank", "mad.lo.u32 p, lane, 128, sm;")):  # fmt: skip
        rows[f"atomic_{name}"] = f"{_FILL}{where}\natom.shared.add.u32 d, [p], 1;"
        rows[f"reduction_{name}"] = f"{_FILL}{where}\nred.shared.add.u32 [p], 1;"
    rows["atomic_exchange"] = f"{_FILL}mad.lo.u32 p, i, 4, sm;\natom.shared.exch.b32 d, [p], t;"
    return [Pattern(name=f"shared_{name}", group=_SHARED, text=text) for name, text in rows.items()]


def _matrices() -> list[Pattern]:
    rows = {}
    total = "add.u32 d, d, q;\nadd.u32 r, r, s;\nadd.u32 d, d, r;"
    for name, pitch in (("dense", 16), ("far", 128), ("padded", 144), ("apart", 32)):
        where = f"{_FILL}mad.lo.u32 p, lane, {pitch}, sm;\n"
        rows[f"ldmatrix_x4_{name}"] = (
            f"{where}ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{d, q, r, s}}, [p];\n{total}"
        )
        if name in {"dense", "far"}:
            rows[f"ldmatrix_x4_trans_{name}"] = rows[f"ldmatrix_x4_{name}"].replace(
                ".x4.shared", ".x4.trans.shared"
            )
            rows[f"ldmatrix_x2_{name}"] = (
                f"{where}ldmatrix.sync.aligned.m8n8.x2.shared.b16 {{d, q}}, [p];\nadd.u32 d, d, q;"
            )
            rows[f"ldmatrix_x1_{name}"] = f"{where}ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{d}}, [p];"
        if name != "apart":
            rows[f"stmatrix_x4_{name}"] = (
                f"mad.lo.u32 p, i, {pitch}, sm;\nstmatrix.sync.aligned.m8n8.x4.shared.b16 [p], {{t, i, lane, t}};"
            )
    rows["stmatrix_x1_far"] = "mad.lo.u32 p, i, 128, sm;\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [p], {t};"
    return [Pattern(name=name, group="matrix", text=text) for name, text in rows.items()]


def _products() -> list[Pattern]:
    forms = {
        "f16_16": ("m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 4, "b32"), "f16_8": ("m16n8k8.row.col.f32.f16.f16.f32", 2, 1, 4, "b32"),
        "bf16_16": ("m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 4, "b32"), "tf32_8": ("m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4, "b32"),
        "f16_16_f16": ("m16n8k16.row.col.f16.f16.f16.f16", 4, 2, 2, "b32"), "s8_32": ("m16n8k32.row.col.s32.s8.s8.s32", 4, 2, 4, "b32"),
        "f64_4": ("m8n8k4.row.col.f64.f64.f64.f64", 1, 1, 2, "b64"), "f64_16": ("m16n8k16.row.col.f64.f64.f64.f64", 8, 4, 4, "b64"),
        "e4m3_32": ("m16n8k32.row.col.f32.e4m3.e4m3.f32", 4, 2, 4, "b32"),
        "b1_256": ("m16n8k256.row.col.s32.b1.b1.s32.and.popc", 4, 2, 4, "b32"),
        "s4_64": ("m16n8k64.row.col.s32.s4.s4.s32", 4, 2, 4, "b32"),
    }  # fmt: skip
    return [Pattern(name=f"mma_{name}", group="matrix", text=_product(*form)) for name, form in forms.items()]


def _product(form: str, a: int, b: int, c: int, kind: str) -> str:
    """Four products, one feeding the next; operands come from the thread's number."""
    letters = {"x": a, "y": b, "z": c}
    lines = []
    for letter, count in letters.items():
        names = [f"{letter}{index}" for index in range(count)]
        lines.append(f".reg .{kind} {', '.join(names)};")
        source = "t" if kind == "b32" else "wide"
        lines += (["cvt.rn.f64.u32 wide, t;"] if kind == "b64" else []) + [
            f"mov.b{kind[1:]} {name}, {source};" for name in names
        ]
    listed = {
        letter: "{" + ", ".join(f"{letter}{index}" for index in range(count)) + "}"
        for letter, count in letters.items()
    }
    lines += [f"mma.sync.aligned.{form} {listed['z']}, {listed['x']}, {listed['y']}, {listed['z']};"] * 4
    joined = "z0" if kind == "b32" else "wide"
    for index in range(1, c):
        lines.append(f"xor.{kind} z0, z0, z{index};")
    lines += ["mov.b64 wide, z0;", "cvt.u32.u64 d, wide;"] if kind == "b64" else [f"mov.b32 d, {joined};"]
    return "\n".join(lines)
