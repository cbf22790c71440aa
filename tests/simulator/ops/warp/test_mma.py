"""mma.sync of every shape and type against NumPy, with the PTX ISA's fragment layouts written out."""

import numpy as np
import pytest

from cutegen_nb.simulator.ptx.faults import UnsupportedOpcode

RANDOM = np.random.default_rng(11)
WARPS = 3

# Elements of one thread as the ISA lists them: i-th element of a fragment → row and column. g is groupID, t is
# threadID_in_group; formulas are those of "Matrix Fragments for mma.…", one table entry a section.
A_LAYOUT = {
    ("m16n8k4", 32): lambda i, g, t: (g + 8 * (i == 1), t),
    ("m16n8k4", 64): lambda i, g, t: (g + 8 * (i == 1), t),
    ("m8n8k4", 64): lambda i, g, t: (g, t),
    ("m16n8k8", 16): lambda i, g, t: (g if i < 2 else g + 8, t * 2 + (i & 1)),
    ("m16n8k8", 32): lambda i, g, t: (g if i in {0, 2} else g + 8, t if i < 2 else t + 4),
    ("m16n8k8", 64): lambda i, g, t: (g if i in {0, 2} else g + 8, t if i < 2 else t + 4),
    ("m16n8k16", 16): lambda i, g, t: (
        g if i < 2 or 4 <= i < 6 else g + 8,
        t * 2 + (i & 1) + (0 if i < 4 else 8),
    ),
    ("m16n8k16", 64): lambda i, g, t: (
        g if i % 2 == 0 else g + 8,
        i * 2 + t if i % 2 == 0 else i * 2 - 2 + t,
    ),
    ("m8n8k16", 8): lambda i, g, t: (g, t * 4 + i),
    ("m16n8k16", 8): lambda i, g, t: (g if i < 4 else g + 8, t * 4 + (i & 3)),
    ("m16n8k32", 8): lambda i, g, t: (
        g if i < 4 or 8 <= i < 12 else g + 8,
        t * 4 + (i & 3) + (0 if i < 8 else 16),
    ),
    ("m8n8k32", 4): lambda i, g, t: (g, t * 8 + i),
    ("m16n8k32", 4): lambda i, g, t: (g if i < 8 else g + 8, t * 8 + (i & 7)),
    ("m16n8k64", 4): lambda i, g, t: (
        g if i < 8 or 16 <= i < 24 else g + 8,
        t * 8 + (i & 7) + (0 if i < 16 else 32),
    ),
    ("m8n8k128", 1): lambda i, g, t: (g, t * 32 + i),
    ("m16n8k128", 1): lambda i, g, t: (g if i < 32 else g + 8, t * 32 + (i & 31)),
    ("m16n8k256", 1): lambda i, g, t: (
        g if i < 32 or 64 <= i < 96 else g + 8,
        t * 32 + (i & 31) + (0 if i < 64 else 128),
    ),
}
B_LAYOUT = {
    ("m16n8k4", 32): lambda i, g, t: (t, g),
    ("m16n8k4", 64): lambda i, g, t: (t, g),
    ("m8n8k4", 64): lambda i, g, t: (t, g),
    ("m16n8k8", 16): lambda i, g, t: (t * 2 + i, g),
    ("m16n8k8", 32): lambda i, g, t: (t if i == 0 else t + 4, g),
    ("m16n8k8", 64): lambda i, g, t: (t if i == 0 else t + 4, g),
    ("m16n8k16", 16): lambda i, g, t: (t * 2 + (i & 1) + (0 if i < 2 else 8), g),
    ("m16n8k16", 64): lambda i, g, t: (t + i * 4, g),
    ("m8n8k16", 8): lambda i, g, t: (t * 4 + i, g),
    ("m16n8k16", 8): lambda i, g, t: (t * 4 + i, g),
    ("m16n8k32", 8): lambda i, g, t: (t * 4 + (i & 3) + (0 if i < 4 else 16), g),
    ("m8n8k32", 4): lambda i, g, t: (t * 8 + i, g),
    ("m16n8k32", 4): lambda i, g, t: (t * 8 + (i & 7), g),
    ("m16n8k64", 4): lambda i, g, t: (t * 8 + (i & 7) + (0 if i < 8 else 32), g),
    ("m8n8k128", 1): lambda i, g, t: (t * 32 + i, g),
    ("m16n8k128", 1): lambda i, g, t: (t * 32 + i, g),
    ("m16n8k256", 1): lambda i, g, t: (t * 32 + (i & 31) + (0 if i < 32 else 128), g),
}


def accumulator_place(i, g, t):
    """Row and column of c_i; tiles of 8 rows have only c0 and c1."""
    return g if i < 2 else g + 8, t * 2 + (i & 1)


def e4m3(code):
    sign, exponent, fraction = -1 if code & 0x80 else 1, code >> 3 & 15, code & 7
    if exponent == 15 and fraction == 7:
        return np.nan
    return sign * (fraction / 8 * 2.0**-6 if exponent == 0 else (1 + fraction / 8) * 2.0 ** (exponent - 7))


def e5m2(code):
    return float(np.array([code << 8], np.uint16).view(np.float16)[0])


TYPES = {
    "f16": (16, lambda code: float(np.array([code], np.uint16).view(np.float16)[0])),
    "bf16": (16, lambda code: float(np.array([code << 16], np.uint32).view(np.float32)[0])),
    "tf32": (32, lambda code: float(np.array([code & ~0x1FFF], np.uint32).view(np.float32)[0])),
    "f64": (64, lambda code: float(np.array([code], np.uint64).view(np.float64)[0])),
    "e4m3": (8, e4m3),
    "e5m2": (8, e5m2),
    "s8": (8, lambda code: code - 256 if code > 127 else code),
    "u8": (8, lambda code: code),
    "s4": (4, lambda code: code - 16 if code > 7 else code),
    "u4": (4, lambda code: code),
    "b1": (1, lambda code: code),
}


def random_codes(kind, shape):
    """Bit patterns of finite numbers of moderate size."""
    if kind in {"f16", "bf16", "tf32", "f64"}:
        numbers = RANDOM.standard_normal(shape)
        if kind == "f64":
            return numbers.view(np.uint64)
        single = numbers.astype(np.float32)
        if kind == "tf32":
            return single.view(np.uint32).astype(np.uint64)
        if kind == "bf16":
            return (single.view(np.uint32) >> 16).astype(np.uint64)
        return numbers.astype(np.float16).view(np.uint16).astype(np.uint64)
    if kind in {"e4m3", "e5m2"}:
        return RANDOM.integers(0, 0x70, shape).astype(np.uint64) | (RANDOM.integers(0, 2, shape) << 7).astype(
            np.uint64
        )
    return RANDOM.integers(0, 1 << TYPES[kind][0], shape).astype(np.uint64)


def values(kind, codes):
    decode = TYPES[kind][1]
    return np.array([decode(int(one)) for one in codes.ravel()], np.float64).reshape(codes.shape)


def packed(kind, codes, layout, count):
    """Registers of each thread, (warps, 32, registers), out of (warps, rows, columns) bit patterns."""
    bits = TYPES[kind][0]
    each = max(1, 32 // bits)
    word = np.uint64 if bits == 64 else np.uint32
    result = np.zeros((len(codes), 32, count // each), word)
    for lane in range(32):
        for i in range(count):
            row, column = layout(i, lane >> 2, lane % 4)
            result[:, lane, i // each] |= (codes[:, row, column] << np.uint64(bits * (i % each))).astype(word)
    return result


def accumulators(kind, shape):
    if kind == "s32":
        return RANDOM.integers(-(10**6), 10**6, shape).astype(np.int32)
    return RANDOM.standard_normal(shape).astype(
        {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
    )


def packed_c(matrix):
    """C's registers, (warps, 32, registers) of 32 or 64 bits."""
    warps, rows, _ = matrix.shape
    each = np.zeros((warps, 32, rows // 4), matrix.dtype)
    for lane in range(32):
        for i in range(rows // 4):
            each[:, lane, i] = matrix[:, *accumulator_place(i, lane >> 2, lane % 4)]
    return each.view({2: np.uint32, 4: np.uint32, 8: np.uint64}[matrix.itemsize])


def unpacked_d(registers, dtype, rows):
    each = np.ascontiguousarray(registers).view(dtype)
    matrix = np.zeros((len(each), rows, 8), dtype)
    for lane in range(32):
        for i in range(rows // 4):
            matrix[:, *accumulator_place(i, lane >> 2, lane % 4)] = each[:, lane, i]
    return matrix


def program(machine, name, counts, wide, guard=""):
    """Load the fragments of each thread from p0–p2, multiply, store D to p3."""
    prefixes = ["%rd" if one else "%r" for one in wide]
    bases, vectors, loads = (0, 20, 30, 40), [], []
    for index in range(4):
        names = [f"{prefixes[index]}{bases[index] + one}" for one in range(counts[index])]
        vectors.append("{" + ", ".join(names) + "}")
        size = 8 if wide[index] else 4
        if index < 3:
            loads.append(f"mad.wide.u32 %rd60, %r97, {size * counts[index]}, %rd{90 + index};")
            loads += [f"ld.global.b{8 * size} {one}, [%rd60+{size * at}];" for at, one in enumerate(names)]
    size = 8 if wide[3] else 4
    stores = [f"mad.wide.u32 %rd60, %r97, {size * counts[3]}, %rd93;"] + [
        f"st.global.b{8 * size} [%rd60+{size * at}], {prefixes[3]}{bases[3] + at};" for at in range(counts[3])
    ]
    clear = [f"mov.b{64 if wide[3] else 32} {prefixes[3]}{bases[3] + at}, 0;" for at in range(counts[3])]
    text = [
        "mov.u32 %r96, %ctaid.x; mov.u32 %r95, %ntid.x; mad.lo.u32 %r97, %r96, %r95, %r99;", *clear, *loads,
        f"{guard} {name} {vectors[3]}, {vectors[0]}, {vectors[1]}, {vectors[2]};", *stores,
    ]  # fmt: skip
    return machine.kernel("\n".join(text), parameters=4)


def multiply(machine, name, kinds, shape, guard=""):
    """Run one mma on random matrices; gives the values of A, B, C and D, and the profile."""
    a_kind, b_kind, c_kind, d_kind = kinds
    m, n, k = (int(one) for one in shape.replace("m", " ").replace("n", " ").replace("k", " ").split())
    a, b = random_codes(a_kind, (WARPS, m, k)), random_codes(b_kind, (WARPS, k, n))
    c = accumulators(c_kind, (WARPS, m, n))
    registers = [
        packed(a_kind, a, A_LAYOUT[shape, TYPES[a_kind][0]], m * k // 32),
        packed(b_kind, b, B_LAYOUT[shape, TYPES[b_kind][0]], n * k // 32),
        packed_c(c),
    ]
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "s32": np.int32}[d_kind]
    result = np.zeros((WARPS, 32, m * n // 32), dtype).view(np.uint64 if d_kind == "f64" else np.uint32)
    arrays = [machine.align(one) for one in (*registers, result)]
    counts = [one.shape[2] for one in arrays]
    text = program(machine, name, counts, [one.dtype.itemsize == 8 for one in arrays], guard)
    profile = machine.launch(text, grid=WARPS, block=32, arrays=arrays)
    return values(a_kind, a), values(b_kind, b), c, unpacked_d(arrays[3], dtype, m), profile


FLOATS = [
    *((shape, "f16", acc) for shape in ("m16n8k8", "m16n8k16") for acc in ("f16", "f32")),
    ("m16n8k8", "bf16", "f32"),
    ("m16n8k16", "bf16", "f32"),
    ("m16n8k4", "tf32", "f32"),
    ("m16n8k8", "tf32", "f32"),
    *((shape, "f64", "f64") for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")),
]


@pytest.mark.parametrize(("shape", "kind", "accumulator"), FLOATS)
def test_floating_point_products_are_rounded_once(machine, shape, kind, accumulator):
    types = f"{accumulator}.{kind}.{kind}.{accumulator}"
    name = f"mma.sync.aligned.{shape}.row.col.{types}"
    a, b, c, d, profile = multiply(machine, name, (kind, kind, accumulator, accumulator), shape)
    want = a.astype(np.longdouble) @ b + c
    slack = 1e-15 * (np.abs(a) @ np.abs(b))
    low, high = (want - slack).astype(d.dtype), (want + slack).astype(d.dtype)
    assert ((low <= d) & (d <= high)).all()
    m, k = a.shape[1:]
    assert profile.counters.flops == {f"tensor.{kind}": WARPS * 2 * m * 8 * k}


@pytest.mark.parametrize("shape", ["m16n8k16", "m16n8k32"])
@pytest.mark.parametrize("accumulator", ["f16", "f32"])
@pytest.mark.parametrize(("left", "right"), [("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3")])
def test_eight_bit_floats_multiply_exactly(machine, shape, left, right, accumulator):
    name = f"mma.sync.aligned.{shape}.row.col.{accumulator}.{left}.{right}.{accumulator}"
    a, b, c, d, _ = multiply(machine, name, (left, right, accumulator, accumulator), shape)
    with np.errstate(over="ignore"):
        assert np.array_equal(d, (a @ b + c).astype(d.dtype))


@pytest.mark.parametrize(
    ("shape", "kinds"),
    [
        *((shape, (a, b)) for shape in ("m8n8k16", "m16n8k16", "m16n8k32") for a in ("s8", "u8") for b in ("s8", "u8")),
        *((shape, (a, b)) for shape in ("m8n8k32", "m16n8k32", "m16n8k64") for a in ("s4", "u4") for b in ("s4", "u4")),
    ],
)  # fmt: skip
def test_integer_products_are_exact(machine, shape, kinds):
    name = f"mma.sync.aligned.{shape}.row.col.s32.{kinds[0]}.{kinds[1]}.s32"
    a, b, c, d, _ = multiply(machine, name, (*kinds, "s32", "s32"), shape)
    assert np.array_equal(d, (a @ b).astype(np.int64) + c)


@pytest.mark.parametrize("shape", ["m8n8k128", "m16n8k128", "m16n8k256"])
@pytest.mark.parametrize("combine", ["xor", "and"])
def test_single_bits_are_combined_and_counted(machine, shape, combine):
    name = f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{combine}.popc"
    a, b, c, d, _ = multiply(machine, name, ("b1", "b1", "s32", "s32"), shape)
    left, right = a.astype(bool)[:, :, :, None], b.astype(bool)[:, None, :, :]
    both = left ^ right if combine == "xor" else left & right
    assert np.array_equal(d, both.sum(axis=2) + c)


def constant_product(machine, name, c):
    """All of A and B are 127 in every element; D of thread 0 is stored."""
    text = machine.kernel(
        f"""mov.b32 %r1, 0x7f7f7f7f; mov.b32 %r2, {c};
        {name} {{%r3, %r4, %r5, %r6}}, {{%r1, %r1}}, {{%r1}}, {{%r2, %r2, %r2, %r2}};
        mad.wide.u32 %rd1, %r99, 4, %rd90; st.global.b32 [%rd1], %r3;""",
        parameters=1,
    )
    result = machine.align(np.zeros(32, np.int32))
    machine.launch(text, arrays=[result])
    return set(result.tolist())


def test_integer_accumulators_wrap_or_saturate(machine):
    name = "mma.sync.aligned.m16n8k16.row.col{}.s32.s8.s8.s32"
    high = (1 << 31) - 5
    assert constant_product(machine, name.format(".satfinite"), high) == {(1 << 31) - 1}
    assert constant_product(machine, name.format(""), high) == {high + 16 * 127**2 - (1 << 32)}


def test_low_bits_of_tf32_operands_are_ignored(machine):
    text = machine.kernel(
        """mov.b32 %r1, 0x3f801fff; mov.b32 %r2, 0x3f801fff; mov.b32 %r3, 0;
        mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%r4, %r5, %r6, %r7}, {%r1, %r1}, {%r2},
            {%r3, %r3, %r3, %r3};
        mad.wide.u32 %rd1, %r99, 4, %rd90; st.global.b32 [%rd1], %r4;""",
        parameters=1,
    )
    result = machine.align(np.zeros(32, np.float32))
    machine.launch(text, arrays=[result])
    assert (result == 4).all()


def test_infinities_and_nan_of_half_precision_pass_through(machine):
    text = machine.kernel(
        """mov.b32 %r1, 0x7c007c00; mov.b32 %r2, 0x3c003c00; mov.b32 %r3, 0; mov.b32 %r8, 0x7e007e00;
        mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r4, %r5, %r6, %r7}, {%r1, %r8}, {%r2},
            {%r3, %r3, %r3, %r3};
        mad.wide.u32 %rd1, %r99, 8, %rd90; st.global.v2.b32 [%rd1], {%r4, %r6};""",
        parameters=1,
    )
    result = machine.align(np.zeros((32, 2), np.float32))
    machine.launch(text, arrays=[result])
    assert (result[:, 0] == np.inf).all()
    assert np.isnan(result[:, 1]).all()


NAME = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
OPERANDS = "{%r1, %r2, %r3, %r4}, {%r10, %r11}, {%r12}, {%r13, %r14, %r15, %r16}"


def test_a_warp_that_is_elsewhere_keeps_its_registers(machine):
    text = machine.kernel(
        f"""setp.lt.u32 %p1, %r99, 32; mov.b32 %r1, 7; mov.b32 %r10, 0x3c003c00; mov.b32 %r11, 0x3c003c00;
        mov.b32 %r12, 0x3c003c00; mov.b32 %r13, 0; mov.b32 %r14, 0; mov.b32 %r15, 0; mov.b32 %r16, 0;
        @!%p1 bra END;
        {NAME} {OPERANDS};
        END: mad.wide.u32 %rd1, %r99, 4, %rd90; st.global.b32 [%rd1], %r1;""",
        parameters=1,
    )
    result = machine.align(np.zeros(128, np.uint32))
    profile = machine.launch(text, block=128, arrays=[result])
    assert (result[:32].view(np.float32) == 8).all()
    assert (result[32:] == 7).all()
    assert profile.counters.flops == {"tensor.f16": 2 * 16 * 8 * 8}


@pytest.mark.parametrize("ctas", [1, 3])
def test_warps_that_loop_differently_often_add_up_their_own_products(machine, ctas):
    """Warp w of CTA c multiplies w + c + 1 times, each adding 8 to every sum."""
    text = machine.kernel(
        f"""mov.u32 %r97, %ctaid.x; shr.u32 %r20, %r99, 5; add.u32 %r20, %r20, %r97; mov.b32 %r21, 0;
        mov.b32 %r10, 0x3c003c00; mov.b32 %r11, 0x3c003c00; mov.b32 %r12, 0x3c003c00;
        mov.b32 %r13, 0; mov.b32 %r14, 0; mov.b32 %r15, 0; mov.b32 %r16, 0;
        LOOP: {NAME} {OPERANDS};
        mov.b32 %r13, %r1; mov.b32 %r14, %r2; mov.b32 %r15, %r3; mov.b32 %r16, %r4;
        add.u32 %r21, %r21, 1; setp.le.u32 %p1, %r21, %r20; @%p1 bra LOOP;
        mov.u32 %r96, %ntid.x; mad.lo.u32 %r95, %r97, %r96, %r99;
        mad.wide.u32 %rd1, %r95, 8, %rd90; st.global.v2.b32 [%rd1], {{%r13, %r16}};""",
        parameters=1,
    )
    result = machine.align(np.zeros((ctas, 4, 32, 2), np.float32))
    profile = machine.launch(text, grid=ctas, block=128, arrays=[result])
    times = np.arange(ctas)[:, None] + np.arange(4) + 1
    assert (result == 8 * times[..., None, None]).all()
    assert profile.counters.flops == {"tensor.f16": int(times.sum()) * 2 * 16 * 8 * 8}


@pytest.mark.parametrize(
    "name",
    [
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32",
        "mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k8.col.row.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k16.row.col.f16.bf16.bf16.f16",
        "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.e4m3.e4m3.f32",
        "mma.sync.aligned.m16n8k8.row.col.satfinite.f32.f16.f16.f32",
    ],
)
def test_a_form_that_does_not_exist_there_is_refused_by_name(machine, name):
    with pytest.raises(UnsupportedOpcode, match=name.replace(".", r"\.")):
        machine.launch(machine.kernel(f"{name} {OPERANDS};"))
