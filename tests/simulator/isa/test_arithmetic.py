"""Instructions against references in Python integers and exact fractions, full and under a guard."""

import math
import random
import struct
from fractions import Fraction

import numpy as np
import pytest

WIDTH = {"8": 1, "16": 2, "32": 4, "64": 8}
THREADS = 96
SENTINEL = 0x5A


def width_of(kind):
    if kind == "pred":
        return 4
    if kind.endswith("x2"):
        return 4
    return int(kind.lstrip("bfsu")) // 8


def signed(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def number(bits, kind):
    """The number that bits of a type mean; floats as Python floats."""
    size = width_of(kind)
    if kind == "bf16":
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    if kind.startswith("f"):
        return struct.unpack({2: "<e", 4: "<f", 8: "<d"}[size], bits.to_bytes(size, "little"))[0]
    return signed(bits, 8 * size) if kind.startswith("s") else bits


FORMAT = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127), "f64": (53, -1022, 1023)}


def rounded(value, kind, mode="rn"):
    """Bits of an exact fraction rounded to a float format."""
    precision, least, greatest = FORMAT[kind]
    size = width_of(kind) * 8
    if value == 0:
        return 0
    sign = value < 0
    value = abs(value)
    exponent = max(_exponent(value), least)
    scaled = value / (Fraction(2) ** (exponent - precision + 1))
    whole, rest = divmod(scaled, 1)
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
        "rz": False,
        "rm": sign and rest > 0,
        "rp": not sign and rest > 0,
    }[mode]
    whole = int(whole) + int(up)
    if whole >> precision:
        whole, exponent = whole >> 1, exponent + 1
    if exponent > greatest:
        bits = ((greatest - least + 2) << (precision - 1)) if mode == "rn" else None
        assert bits is not None, "overflow is not tested with directed rounding"
    elif whole >> (precision - 1):
        bits = ((exponent - least + 1) << (precision - 1)) | (whole & ((1 << (precision - 1)) - 1))
    else:
        bits = whole
    return bits | (int(sign) << (size - 1))


def _exponent(value):
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= value else exponent - 1


def samples(kind, seed):
    """Bits to try: edges first, then random ones; floats stay finite and in a tame range."""
    chance = random.Random(seed)
    bits = 8 * width_of(kind)
    if kind == "pred":
        return [chance.getrandbits(1) for _ in range(THREADS)]
    if kind.startswith(("f", "bf")) and not kind.endswith("x2"):
        found = [rounded(Fraction(one), kind) for one in (1.0, -1.0, 0.5, 2.0, -3.0, 1.5, 0.0)]
        while len(found) < THREADS:
            scale = 2.0 ** chance.randint(-8, 8)
            found.append(rounded(Fraction(chance.uniform(-1, 1) * scale), kind))
        return chance.sample(found, len(found))
    edges = [0, 1, 2, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, 3, 7, 31, 32, 33]
    small = [chance.getrandbits(5) for _ in range(20)]
    found = [*edges, *small]
    found += [chance.getrandbits(chance.randint(1, bits)) for _ in range(THREADS - len(found))]
    return chance.sample([one & ((1 << bits) - 1) for one in found], THREADS)


REGISTER = {1: "%rs", 2: "%rs", 4: "%r", 8: "%rd"}


def program(machine, case, *, guarded):
    template, inputs, output = case
    """A kernel that loads one element an input, executes the template, stores the result."""
    lines = []
    names = []
    for index, kind in enumerate(inputs):
        size = width_of(kind)
        name = f"{REGISTER[size]}{10 + index}"
        lines.append(f"mad.wide.u32 %rd80, %r99, {size}, %rd{90 + index};")
        lines.append(f"ld.global.b{8 * size} {name}, [%rd80];")
        if kind == "pred":
            lines.append(f"setp.ne.b32 %p{10 + index}, {name}, 0;")
            name = f"%p{10 + index}"
        names.append(name)
    size = width_of(output)
    result = "%p50" if output == "pred" else f"{REGISTER[size]}50"
    shown = f"{REGISTER[size]}50"
    lines.append(f"mov.b{8 * size} {shown}, {SENTINEL};")
    if output == "pred":
        lines.append("setp.ne.b32 %p50, 0, 0;")
    if guarded:
        lines += ["and.b32 %r80, %r99, 5;", "setp.eq.b32 %p80, %r80, 4;"]
    for part in template.format(*names, d=result).split(";"):
        if part.strip():
            lines.append(f"{'@%p80 ' if guarded else ''}{part.strip()};")
    if output == "pred":
        lines.append("selp.b32 %r50, 1, 0, %p50;")
    lines.append(f"mad.wide.u32 %rd81, %r99, {size}, %rd{90 + len(inputs)};")
    lines.append(f"st.global.b{8 * size} [%rd81], {shown};")
    return machine.kernel("\n".join(lines), parameters=len(inputs) + 1)


def execute(machine, case, *, guarded=False, given=None):
    template, inputs, output = case
    operands = given or [samples(kind, index + len(template)) for index, kind in enumerate(inputs)]
    arrays = [
        machine.align(np.array(values, f"u{width_of(kind)}"))
        for values, kind in zip(operands, inputs, strict=True)
    ]
    result = machine.align(np.zeros(THREADS, f"u{width_of(output)}"))
    machine.launch(program(machine, case, guarded=guarded), block=THREADS, arrays=[*arrays, result])
    return operands, [int(one) for one in result]


def wrap(bits):
    return lambda value: value & ((1 << bits) - 1)


def truncated(a, b):
    return int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


def bfe(value, start, length, *, sign):
    bits = 32
    start, length = start & 255, length & 255
    result = 0
    top = min(start + length - 1, bits - 1)
    fill = (value >> top) & 1 if sign and length else 0
    for index in range(bits):
        inside = index < length and start + index < bits
        result |= (value >> (start + index) & 1 if inside else fill) << index
    return result


def bfi(a, b, start, length):
    start, length = start & 255, length & 255
    for index in range(length):
        if start + index < 32:
            b = b & ~(1 << (start + index)) | (((a >> index) & 1) << (start + index))
    return b


def prmt(a, b, control):
    joined = [(a >> 8 * i) & 255 for i in range(4)] + [(b >> 8 * i) & 255 for i in range(4)]
    result = 0
    for index in range(4):
        nibble = control >> 4 * index & 15
        byte = joined[nibble & 7]
        result |= ((255 if byte >> 7 else 0) if nibble & 8 else byte) << 8 * index
    return result


U32, S32, U64, S64 = wrap(32), wrap(32), wrap(64), wrap(64)
INTEGER_CASES = [
    ("add.s32 {d}, {0}, {1};", ("s32", "s32"), "s32", lambda a, b: a + b),
    ("add.u16 {d}, {0}, {1};", ("u16", "u16"), "u16", lambda a, b: a + b),
    ("add.s64 {d}, {0}, {1};", ("s64", "s64"), "s64", lambda a, b: a + b),
    ("add.sat.s32 {d}, {0}, {1};", ("s32", "s32"), "s32", lambda a, b: max(-(1 << 31), min((1 << 31) - 1, a + b))),
    ("sub.s32 {d}, {0}, {1};", ("s32", "s32"), "s32", lambda a, b: a - b),
    ("sub.u64 {d}, {0}, {1};", ("u64", "u64"), "u64", lambda a, b: a - b),
    ("mul.lo.s32 {d}, {0}, {1};", ("s32", "s32"), "s32", lambda a, b: a * b),
    ("mul.hi.s32 {d}, {0}, {1};", ("s32", "s32"), "s32", lambda a, b: (a * b) >> 32),
    ("mul.hi.u32 {d}, {0}, {1};", ("u32", "u32"), "u32", lambda a, b: (a * b) >> 32),
    ("mul.hi.u64 {d}, {0}, {1};", ("u64", "u64"), "u64", lambda a, b: (a * b) >> 64),
    ("mul.hi.s64 {d}, {0}, {1};", ("s64", "s64"), "s64", lambda a, b: (a * b) >> 64),
    ("mul.wide.s32 {d}, {0}, {1};", ("s32", "s32"), "s64", lambda a, b: a * b),
    ("mul.wide.u32 {d}, {0}, {1};", ("u32", "u32"), "u64", lambda a, b: a * b),
    ("mul.wide.u16 {d}, {0}, {1};", ("u16", "u16"), "u32", lambda a, b: a * b),
    ("mul24.lo.s32 {d}, {0}, {1};", ("s32", "s32"), "s32", lambda a, b: signed(a, 24) * signed(b, 24)),
    ("mad.lo.s32 {d}, {0}, {1}, {2};", ("s32", "s32", "s32"), "s32", lambda a, b, c: a * b + c),
    ("mad.hi.u32 {d}, {0}, {1}, {2};", ("u32", "u32", "u32"), "u32", lambda a, b, c: ((a * b) >> 32) + c),
    ("mad.wide.s32 {d}, {0}, {1}, {2};", ("s32", "s32", "s64"), "s64", lambda a, b, c: a * b + c),
    ("mad.wide.u16 {d}, {0}, {1}, {2};", ("u16", "u16", "u32"), "u32", lambda a, b, c: a * b + c),
    (
        "mad.lo.cc.u32 %r70, {0}, {1}, {2}; madc.hi.u32 {d}, {0}, {1}, 0;",
        ("u32", "u32", "u32"), "u32", lambda a, b, c: (a * b + c) >> 32,
    ),
    (
        "add.cc.u32 %r70, {0}, {1}; addc.u32 {d}, {0}, {1};",
        ("u32", "u32"), "u32", lambda a, b: a + b + (a + b >> 32),
    ),
    ("sub.cc.u32 %r70, {0}, {1}; subc.u32 {d}, {1}, {0};", ("u32", "u32"), "u32", lambda a, b: b - a - int(a < b)),
    (
        "add.cc.u64 %rd70, {0}, {1}; addc.u64 {d}, {0}, {1};",
        ("u64", "u64"), "u64", lambda a, b: a + b + (a + b >> 64),
    ),
    ("div.s32 {d}, {0}, {1};", ("s32", "s32"), "s32", lambda a, b: truncated(a, b) if b else None),
    ("div.u32 {d}, {0}, {1};", ("u32", "u32"), "u32", lambda a, b: a // b if b else None),
    ("rem.s32 {d}, {0}, {1};", ("s32", "s32"), "s32", lambda a, b: a - truncated(a, b) * b if b else None),
    ("rem.u64 {d}, {0}, {1};", ("u64", "u64"), "u64", lambda a, b: a % b if b else None),
    ("min.s32 {d}, {0}, {1};", ("s32", "s32"), "s32", min),
    ("max.u32 {d}, {0}, {1};", ("u32", "u32"), "u32", max),
    ("max.s16 {d}, {0}, {1};", ("s16", "s16"), "s16", max),
    ("abs.s32 {d}, {0};", ("s32",), "s32", abs),
    ("neg.s64 {d}, {0};", ("s64",), "s64", lambda a: -a),
    ("and.b32 {d}, {0}, {1};", ("b32", "b32"), "b32", lambda a, b: a & b),
    ("or.b16 {d}, {0}, {1};", ("b16", "b16"), "b16", lambda a, b: a | b),
    ("xor.b64 {d}, {0}, {1};", ("b64", "b64"), "b64", lambda a, b: a ^ b),
    ("not.b32 {d}, {0};", ("b32",), "b32", lambda a: ~a),
    ("cnot.b32 {d}, {0};", ("b32",), "b32", lambda a: int(a == 0)),
    ("shl.b32 {d}, {0}, {1};", ("b32", "u32"), "b32", lambda a, b: a << b if b < 32 else 0),
    ("shl.b64 {d}, {0}, {1};", ("b64", "u32"), "b64", lambda a, b: a << b if b < 64 else 0),
    ("shr.u32 {d}, {0}, {1};", ("u32", "u32"), "u32", lambda a, b: a >> b if b < 32 else 0),
    ("shr.s32 {d}, {0}, {1};", ("s32", "u32"), "s32", lambda a, b: a >> min(b, 31)),
    ("shr.s16 {d}, {0}, {1};", ("s16", "u32"), "s16", lambda a, b: a >> min(b, 15)),
    ("shr.u64 {d}, {0}, 70;", ("u64",), "u64", lambda a: 0),
    ("shr.s64 {d}, {0}, 70;", ("s64",), "s64", lambda a: a >> 63),
    ("shl.b32 {d}, {0}, 40;", ("b32",), "b32", lambda a: 0),
    (
        "shf.l.wrap.b32 {d}, {0}, {1}, {2};",
        ("b32", "b32", "u32"), "b32", lambda a, b, c: (((b << 32) | a) << (c & 31)) >> 32,
    ),
    (
        "shf.r.clamp.b32 {d}, {0}, {1}, {2};",
        ("b32", "b32", "u32"), "b32", lambda a, b, c: ((b << 32) | a) >> min(c, 32),
    ),
    (
        "lop3.b32 {d}, {0}, {1}, {2}, 0xE2;",
        ("b32", "b32", "b32"), "b32",
        lambda a, b, c: sum(((0xE2 >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1))) & 1) << i for i in range(32)),
    ),
    ("popc.b32 {d}, {0};", ("b32",), "u32", lambda a: a.bit_count()),
    ("popc.b64 {d}, {0};", ("b64",), "u32", lambda a: a.bit_count()),
    ("clz.b32 {d}, {0};", ("b32",), "u32", lambda a: 32 - a.bit_length()),
    ("clz.b64 {d}, {0};", ("b64",), "u32", lambda a: 64 - a.bit_length()),
    ("brev.b32 {d}, {0};", ("b32",), "b32", lambda a: int(f"{a:032b}"[::-1], 2)),
    ("brev.b64 {d}, {0};", ("b64",), "b64", lambda a: int(f"{a:064b}"[::-1], 2)),
    ("bfind.u32 {d}, {0};", ("u32",), "u32", lambda a: a.bit_length() - 1),
    ("bfind.s32 {d}, {0};", ("s32",), "u32", lambda a: (~a if a < 0 else a).bit_length() - 1),
    ("bfind.shiftamt.u64 {d}, {0};", ("u64",), "u32", lambda a: 64 - a.bit_length() if a else -1),
    ("bfe.u32 {d}, {0}, {1}, {2};", ("u32", "u32", "u32"), "u32", lambda a, b, c: bfe(a, b, c, sign=False)),
    ("bfe.s32 {d}, {0}, {1}, {2};", ("u32", "u32", "u32"), "u32", lambda a, b, c: bfe(a, b, c, sign=True)),
    ("bfi.b32 {d}, {0}, {1}, {2}, {3};", ("b32", "b32", "u32", "u32"), "b32", bfi),
    ("prmt.b32 {d}, {0}, {1}, {2};", ("b32", "b32", "b32"), "b32", prmt),
    ("sad.u32 {d}, {0}, {1}, {2};", ("u32", "u32", "u32"), "u32", lambda a, b, c: abs(a - b) + c),
    ("selp.b32 {d}, {0}, {1}, {2};", ("b32", "b32", "pred"), "b32", lambda a, b, p: a if p else b),
    ("selp.b64 {d}, {0}, {1}, {2};", ("b64", "b64", "pred"), "b64", lambda a, b, p: a if p else b),
    ("slct.b32.s32 {d}, {0}, {1}, {2};", ("b32", "b32", "s32"), "b32", lambda a, b, c: a if c >= 0 else b),
    ("setp.lt.s32 {d}, {0}, {1};", ("s32", "s32"), "pred", lambda a, b: a < b),
    ("setp.hi.u32 {d}, {0}, {1};", ("u32", "u32"), "pred", lambda a, b: a > b),
    ("setp.ne.b64 {d}, {0}, {1};", ("b64", "b64"), "pred", lambda a, b: a != b),
    ("setp.ge.u16 {d}, {0}, {1};", ("u16", "u16"), "pred", lambda a, b: a >= b),
    (
        "setp.lt.and.s32 {d}|%p60, {0}, {1}, !{2};",
        ("s32", "s32", "pred"), "pred", lambda a, b, p: a < b and not p,
    ),
    (
        "setp.lt.or.s32 %p60|{d}, {0}, {1}, {2};",
        ("s32", "s32", "pred"), "pred", lambda a, b, p: not a < b or bool(p),
    ),
    ("and.pred {d}, {0}, {1};", ("pred", "pred"), "pred", lambda a, b: a and b),
    ("xor.pred {d}, {0}, {1};", ("pred", "pred"), "pred", lambda a, b: a ^ b),
    ("not.pred {d}, {0};", ("pred",), "pred", lambda a: not a),
    ("set.gt.u32.s32 {d}, {0}, {1};", ("s32", "s32"), "u32", lambda a, b: -int(a > b)),
    ("cvt.s64.s32 {d}, {0};", ("s32",), "s64", lambda a: a),
    ("cvt.u64.u32 {d}, {0};", ("u32",), "u64", lambda a: a),
    ("cvt.u32.u64 {d}, {0};", ("u64",), "u32", lambda a: a),
    ("cvt.s32.s16 {d}, {0};", ("s16",), "s32", lambda a: a),
    ("cvt.u16.u32 {d}, {0};", ("u32",), "u16", lambda a: a),
    ("cvt.s32.s8 {d}, {0};", ("b32",), "s32", lambda a: signed(a, 8)),
    ("cvt.u32.u8 {d}, {0};", ("b32",), "u32", lambda a: a & 255),
    ("cvt.sat.s8.s32 {d}, {0};", ("s32",), "s32", lambda a: max(-128, min(127, a))),
    ("cvt.sat.u16.s32 {d}, {0};", ("s32",), "u16", lambda a: max(0, min(65535, a))),
    ("mov.b64 {d}, {{{0}, {1}}};", ("b32", "b32"), "b64", lambda a, b: (b << 32) | a),
    ("mov.b32 {{_, %rs70}}, {0}; cvt.u32.u16 {d}, %rs70;", ("b32",), "u32", lambda a: a >> 16),
    ("mov.b64 {{%r70, %r71}}, {0}; sub.s32 {d}, %r70, %r71;", ("b64",), "s32", lambda a: (a & 0xFFFFFFFF) - (a >> 32)),
]  # fmt: skip


@pytest.mark.parametrize("guarded", [False, True], ids=["all", "guarded"])
@pytest.mark.parametrize(
    "case", INTEGER_CASES, ids=[case[0].split(" ")[0] + str(i) for i, case in enumerate(INTEGER_CASES)]
)
def test_integer_instruction_gives_what_python_integers_give(machine, case, guarded):
    template, inputs, output, reference = case
    operands, got = execute(machine, (template, inputs, output), guarded=guarded)
    mask = (1 << 8 * width_of(output)) - 1
    for thread in range(THREADS):
        if guarded and thread & 5 != 4:
            want = 0 if output == "pred" else SENTINEL
        else:
            values = [number(one[thread], kind) for one, kind in zip(operands, inputs, strict=True)]
            exact = reference(*values)
            if exact is None:
                continue  # PTX leaves it open
            want = int(exact) & mask
        assert got[thread] == want, (thread, [one[thread] for one in operands])


def exact_sqrt(value, kind):
    scale = 200
    return rounded(Fraction(math.isqrt(int(value * (1 << 2 * scale))), 1 << scale), kind)


FLOAT_CASES = [
    ("add.f32 {d}, {0}, {1};", ("f32", "f32"), "f32", lambda a, b: a + b, "rn"),
    ("add.rz.f32 {d}, {0}, {1};", ("f32", "f32"), "f32", lambda a, b: a + b, "rz"),
    ("sub.f64 {d}, {0}, {1};", ("f64", "f64"), "f64", lambda a, b: a - b, "rn"),
    ("sub.rm.f32 {d}, {0}, {1};", ("f32", "f32"), "f32", lambda a, b: a - b, "rm"),
    ("mul.f32 {d}, {0}, {1};", ("f32", "f32"), "f32", lambda a, b: a * b, "rn"),
    ("mul.rp.f32 {d}, {0}, {1};", ("f32", "f32"), "f32", lambda a, b: a * b, "rp"),
    ("fma.rn.f32 {d}, {0}, {1}, {2};", ("f32", "f32", "f32"), "f32", lambda a, b, c: a * b + c, "rn"),
    ("fma.rz.f32 {d}, {0}, {1}, {2};", ("f32", "f32", "f32"), "f32", lambda a, b, c: a * b + c, "rz"),
    ("fma.rm.f32 {d}, {0}, {1}, {2};", ("f32", "f32", "f32"), "f32", lambda a, b, c: a * b + c, "rm"),
    ("fma.rp.f32 {d}, {0}, {1}, {2};", ("f32", "f32", "f32"), "f32", lambda a, b, c: a * b + c, "rp"),
    ("fma.rn.f64 {d}, {0}, {1}, {2};", ("f64", "f64", "f64"), "f64", lambda a, b, c: a * b + c, "rn"),
    ("add.f16 {d}, {0}, {1};", ("f16", "f16"), "f16", lambda a, b: a + b, "rn"),
    ("mul.f16 {d}, {0}, {1};", ("f16", "f16"), "f16", lambda a, b: a * b, "rn"),
    ("fma.rn.f16 {d}, {0}, {1}, {2};", ("f16", "f16", "f16"), "f16", lambda a, b, c: a * b + c, "rn"),
    ("add.bf16 {d}, {0}, {1};", ("bf16", "bf16"), "bf16", lambda a, b: a + b, "rn"),
    ("sub.bf16 {d}, {0}, {1};", ("bf16", "bf16"), "bf16", lambda a, b: a - b, "rn"),
    ("mul.bf16 {d}, {0}, {1};", ("bf16", "bf16"), "bf16", lambda a, b: a * b, "rn"),
    ("fma.rn.bf16 {d}, {0}, {1}, {2};", ("bf16", "bf16", "bf16"), "bf16", lambda a, b, c: a * b + c, "rn"),
    ("div.rn.f32 {d}, {0}, {1};", ("f32", "f32"), "f32", lambda a, b: a / b if b else None, "rn"),
    ("div.rz.f32 {d}, {0}, {1};", ("f32", "f32"), "f32", lambda a, b: a / b if b else None, "rz"),
    ("div.rn.f64 {d}, {0}, {1};", ("f64", "f64"), "f64", lambda a, b: a / b if b else None, "rn"),
    ("rcp.rn.f32 {d}, {0};", ("f32",), "f32", lambda a: 1 / a if a else None, "rn"),
    ("abs.f32 {d}, {0};", ("f32",), "f32", abs, "rn"),
    ("neg.f16 {d}, {0};", ("f16",), "f16", lambda a: -a or None, "rn"),
    ("min.f32 {d}, {0}, {1};", ("f32", "f32"), "f32", min, "rn"),
    ("max.bf16 {d}, {0}, {1};", ("bf16", "bf16"), "bf16", max, "rn"),
    ("max.f16 {d}, {0}, {1};", ("f16", "f16"), "f16", max, "rn"),
    ("cvt.rn.f16.f32 {d}, {0};", ("f32",), "f16", lambda a: a, "rn"),
    ("cvt.rz.f16.f32 {d}, {0};", ("f32",), "f16", lambda a: a, "rz"),
    ("cvt.rn.bf16.f32 {d}, {0};", ("f32",), "bf16", lambda a: a, "rn"),
    ("cvt.rz.bf16.f32 {d}, {0};", ("f32",), "bf16", lambda a: a, "rz"),
    ("cvt.f32.f16 {d}, {0};", ("f16",), "f32", lambda a: a, "rn"),
    ("cvt.f32.bf16 {d}, {0};", ("bf16",), "f32", lambda a: a, "rn"),
    ("cvt.rn.f32.f64 {d}, {0};", ("f64",), "f32", lambda a: a, "rn"),
    ("cvt.rp.f32.f64 {d}, {0};", ("f64",), "f32", lambda a: a, "rp"),
    ("cvt.f64.f32 {d}, {0};", ("f32",), "f64", lambda a: a, "rn"),
    ("cvt.rn.f32.s32 {d}, {0};", ("s32",), "f32", lambda a: a, "rn"),
    ("cvt.rz.f32.u32 {d}, {0};", ("u32",), "f32", lambda a: a, "rz"),
    ("cvt.rn.f32.u64 {d}, {0};", ("u64",), "f32", lambda a: a, "rn"),
    ("cvt.rn.f64.s64 {d}, {0};", ("s64",), "f64", lambda a: a, "rn"),
    ("cvt.rn.f16.s16 {d}, {0};", ("s16",), "f16", lambda a: a, "rn"),
    ("cvt.rni.f32.f32 {d}, {0};", ("f32",), "f32", lambda a: round(a) or None, "rn"),
    ("cvt.rmi.f32.f32 {d}, {0};", ("f32",), "f32", lambda a: math.floor(a) or None, "rn"),
    ("cvt.sat.f32.f32 {d}, {0};", ("f32",), "f32", lambda a: min(max(a, Fraction(0)), Fraction(1)), "rn"),
]  # fmt: skip


@pytest.mark.parametrize("guarded", [False, True], ids=["all", "guarded"])
@pytest.mark.parametrize("case", FLOAT_CASES, ids=[case[0].split(" ")[0] for case in FLOAT_CASES])
def test_float_instruction_rounds_the_exact_result_once(machine, case, guarded):
    template, inputs, output, reference, mode = case
    operands, got = execute(machine, (template, inputs, output), guarded=guarded)
    for thread in range(THREADS):
        if guarded and thread & 5 != 4:
            assert got[thread] == SENTINEL
            continue
        values = [Fraction(number(one[thread], kind)) for one, kind in zip(operands, inputs, strict=True)]
        exact = reference(*values)
        if exact is None:
            continue
        want = rounded(Fraction(exact), output, mode)
        zero = want & ((1 << 8 * width_of(output) - 1) - 1) == 0
        same = got[thread] == want or (zero and number(got[thread], output) == 0)
        assert same, (
            thread,
            [float(one) for one in values],
            number(got[thread], output),
            number(want, output),
        )


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_square_root_is_correctly_rounded(machine, kind):
    given = [[one & ~(1 << (8 * width_of(kind) - 1)) for one in samples(kind, 5)]]
    _, got = execute(machine, (f"sqrt.rn.{kind} {{d}}, {{0}};", (kind,), kind), given=given)
    for bits, result in zip(given[0], got, strict=True):
        value = Fraction(number(bits, kind))
        assert result == (exact_sqrt(value, kind) if value else 0)


@pytest.mark.parametrize(
    ("name", "exact", "relative", "absolute"),
    [
        ("ex2.approx.ftz.f32", lambda x: 2.0**x, 2.0**-22, 0),
        ("rcp.approx.f32", lambda x: 1 / x, 2.0**-23, 0),
        ("sqrt.approx.f32", math.sqrt, 2.0**-23, 0),
        ("rsqrt.approx.f32", lambda x: 1 / math.sqrt(x), 2.0**-22.4, 0),
        ("lg2.approx.f32", math.log2, 2.0**-22, 2.0**-22),
        ("sin.approx.f32", math.sin, 0, 2.0**-20.5),
        ("cos.approx.f32", math.cos, 0, 2.0**-20.5),
        ("tanh.approx.f32", math.tanh, 2.0**-11, 0),
    ],
)
def test_approximation_stays_within_its_documented_error_and_is_not_exact(
    machine, name, exact, relative, absolute
):
    chance = random.Random(3)
    values = np.array([chance.uniform(0.01, 6) for _ in range(THREADS)], np.float32)
    given = [[int(one) for one in values.view(np.uint32)]]
    _, got = execute(machine, (f"{name} {{d}}, {{0}};", ("f32",), "f32"), given=given)
    results = np.array(got, np.uint32).view(np.float32)
    truth = np.array([exact(float(one)) for one in values])
    bound = np.maximum(np.abs(truth) * relative, absolute)
    error = np.abs(results.astype(np.float64) - truth)
    assert (error <= bound).all()
    assert error.max() > bound[error.argmax()] / 4  # no better than the hardware may be
    assert (results != truth.astype(np.float32)).mean() > 0.2


def test_float_to_integer_saturates_and_turns_nan_into_zero(machine):
    values = np.array(
        [1e20, -1e20, math.nan, math.inf, 2.5, -2.5, 3.5, 2**31] + [0.0] * (THREADS - 8), np.float32
    )
    given = [[int(one) for one in values.view(np.uint32)]]
    for mode, want in (
        ("rni", [2147483647, -2147483648, 0, 2147483647, 2, -2, 4, 2147483647]),
        ("rzi", [2147483647, -2147483648, 0, 2147483647, 2, -2, 3, 2147483647]),
        ("rmi", [2147483647, -2147483648, 0, 2147483647, 2, -3, 3, 2147483647]),
        ("rpi", [2147483647, -2147483648, 0, 2147483647, 3, -2, 4, 2147483647]),
    ):
        _, got = execute(machine, (f"cvt.{mode}.s32.f32 {{d}}, {{0}};", ("f32",), "s32"), given=given)
        assert [signed(one, 32) for one in got[:8]] == want
    _, got = execute(machine, ("cvt.rzi.u64.f32 {d}, {0};", ("f32",), "u64"), given=given)
    assert got[:5] == [(1 << 64) - 1, 0, 1 << 63, (1 << 64) - 1, 2]


def test_min_and_max_prefer_numbers_unless_nan_is_asked_for(machine):
    nan, one = 0x7FC00000, 0x3F800000
    given = [[nan, one, nan] * (THREADS // 3), [one, nan, nan] * (THREADS // 3)]
    _, got = execute(machine, ("max.f32 {d}, {0}, {1};", ("f32", "f32"), "f32"), given=given)
    assert got[:2] == [one, one]
    assert math.isnan(number(got[2], "f32"))
    _, got = execute(machine, ("min.NaN.f32 {d}, {0}, {1};", ("f32", "f32"), "f32"), given=given)
    assert all(math.isnan(number(bits, "f32")) for bits in got)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("lt", False),
        ("ltu", True),
        ("ne", False),
        ("neu", True),
        ("num", False),
        ("nan", True),
        ("equ", True),
    ],
)
def test_comparison_with_nan_holds_only_for_unordered_forms(machine, name, want):
    given = [[0x7FC00000] * THREADS, [0x3F800000] * THREADS]
    _, got = execute(machine, (f"setp.{name}.f32 {{d}}, {{0}}, {{1}};", ("f32", "f32"), "pred"), given=given)
    assert set(got) == {int(want)}


@pytest.mark.parametrize(
    ("kind", "one", "two", "three"), [("f16x2", 0x3C00, 0x4000, 0x4200), ("bf16x2", 0x3F80, 0x4000, 0x4040)]
)
def test_packed_halves_are_computed_apart(machine, kind, one, two, three):
    first, second = (two << 16) | one, (one << 16) | two
    given = [[first] * THREADS, [second] * THREADS]
    _, got = execute(machine, (f"add.{kind} {{d}}, {{0}}, {{1}};", ("b32", "b32"), "b32"), given=given)
    assert got[0] == (three << 16) | three
    _, got = execute(
        machine, (f"fma.rn.{kind} {{d}}, {{0}}, {{1}}, {{0}};", ("b32", "b32"), "b32"), given=given
    )
    four = {"f16x2": 0x4400, "bf16x2": 0x4080}[kind]
    assert got[0] == (four << 16) | three
    half = kind.removesuffix("x2")
    singles = [[0x3F800000] * THREADS, [0x40000000] * THREADS]
    _, got = execute(
        machine, (f"cvt.rn.{half}x2.f32 {{d}}, {{0}}, {{1}};", ("f32", "f32"), "b32"), given=singles
    )
    assert got[0] == (one << 16) | two


def test_flush_to_zero_keeps_the_sign(machine):
    given = [[0x00000001, 0x80000001, 0x00800000] * (THREADS // 3), [0x3F800000] * THREADS]
    _, got = execute(machine, ("mul.ftz.f32 {d}, {0}, {1};", ("f32", "f32"), "f32"), given=given)
    assert got[:3] == [0, 0x80000000, 0x00800000]
    _, got = execute(machine, ("mul.f32 {d}, {0}, {1};", ("f32", "f32"), "f32"), given=given)
    assert got[:3] == [1, 0x80000001, 0x00800000]
