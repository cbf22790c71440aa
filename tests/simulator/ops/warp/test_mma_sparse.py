"""mma.sp of every shape and type against the dense product, with fragments and metadata written out."""

import numpy as np
import pytest

from cutegen_nb.simulator.ptx.faults import UnsupportedOpcode
from tests.simulator.ops.warp.test_mma import (
    A_LAYOUT,
    RANDOM,
    TYPES,
    accumulators,
    packed,
    packed_c,
    random_codes,
    unpacked_d,
    values,
)

WARPS = 2
B_LAYOUT = {
    32: lambda i, g, t: (t + 4 * i, g),
    16: lambda i, g, t: (t * 2 + (i & 1) + 8 * (i // 2), g),
    8: lambda i, g, t: (t * 4 + (i & 3) + 16 * (i // 4), g),
    4: lambda i, g, t: (t * 8 + (i & 7) + 32 * (i // 8), g),
}


def place_of_metadata(kind, selector, row, chunk, chunks):
    """Lane and first bit of a chunk's four bits, as CUTLASS's ELayout has them."""
    group = row % 8
    if TYPES[kind][0] >= 16:
        # A lane has four chunks of rows g (low half) and g + 8; the next one those further along K.
        threads = max(1, chunks // 4)
        return 4 * group + selector * threads + chunk // 4, 16 * (row // 8) + 4 * (chunk % 4)
    threads = 2 * (chunks // 8)
    return 4 * group + selector * threads + row // 8 + 2 * (chunk // 8), 4 * (chunk % 8)


def chosen(kind, k):
    """Places of kept elements in each chunk (ascending), by row and chunk, and their metadata."""
    if kind == "tf32":
        first = RANDOM.integers(0, 2, (WARPS, 16, k // 2))
        return first[..., None], np.where(first == 1, 0b1110, 0b0100)
    pairs = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
    both = pairs[RANDOM.integers(0, 6, (WARPS, 16, k // (8 if TYPES[kind][0] == 4 else 4)))]
    metadata = both[..., 0] | both[..., 1] << 2
    if TYPES[kind][0] == 4:
        both = (2 * both[..., None] + np.arange(2)).reshape(*both.shape[:-1], 4)
    return both, metadata


def program(machine, name, counts, selector):
    bases, vectors, loads = (0, 20, 30, 40, 50), [], []
    for index in range(5):
        names = [f"%r{bases[index] + one}" for one in range(counts[index])]
        vectors.append("{" + ", ".join(names) + "}")
        if index != 3:
            loads.append(f"mad.wide.u32 %rd60, %r97, {4 * counts[index]}, %rd{90 + index};")
            loads += [f"ld.global.b32 {one}, [%rd60+{4 * at}];" for at, one in enumerate(names)]
    stores = [f"mad.wide.u32 %rd60, %r97, {4 * counts[3]}, %rd93;"]
    stores += [f"st.global.b32 [%rd60+{4 * at}], %r{40 + at};" for at in range(counts[3])]
    text = [
        "mov.u32 %r96, %ctaid.x; mov.u32 %r95, %ntid.x; mad.lo.u32 %r97, %r96, %r95, %r99;", *loads,
        f"{name} {vectors[3]}, {vectors[0]}, {vectors[1]}, {vectors[2]}, %r50, {selector};", *stores,
    ]  # fmt: skip
    return machine.kernel("\n".join(text), parameters=5)


FORMS = [
    *(("f16", k, acc, range(64 // k)) for k in (16, 32) for acc in ("f16", "f32")),
    *(("bf16", k, "f32", range(64 // k)) for k in (16, 32)),
    *(("tf32", k, "f32", range(32 // k)) for k in (8, 16)),
    *((kind, 64, "f32", range(1)) for kind in ("e4m3", "e5m2")),
    *((kind, k, "s32", range(64 // k)) for k in (32, 64) for kind in ("s8", "u8")),
    *((kind, k, "s32", range(128 // k)) for k in (64, 128) for kind in ("s4", "u4")),
]


CASES = [
    (form, *one, at)
    for *one, selectors in FORMS
    for at in selectors
    for form in ("sp", "sp::ordered_metadata")
]


@pytest.mark.every(test=3)
@pytest.mark.parametrize("case", CASES)
def test_a_product_is_that_of_the_matrix_with_zeros(machine, case):
    form, kind, k, accumulator, selector = case
    bits = TYPES[kind][0]
    kept, b = random_codes(kind, (WARPS, 16, k // 2)), random_codes(kind, (WARPS, k, 8))
    c = accumulators(accumulator, (WARPS, 16, 8))
    places, metadata = chosen(kind, k)
    chunks = metadata.shape[2]
    words = RANDOM.integers(0, 1 << 32, (WARPS, 32, 1)).astype(np.uint32)  # others' words do not count
    for row in range(16):
        for chunk in range(chunks):
            lane, first = place_of_metadata(kind, selector, row, chunk, chunks)
            words[:, lane, 0] &= ~np.uint32(0xF << first)
            words[:, lane, 0] |= (metadata[:, row, chunk] << first).astype(np.uint32)
    full = np.zeros((WARPS, 16, chunks, k // chunks))
    np.put_along_axis(full, places, values(kind, kept).reshape(*metadata.shape, -1), axis=-1)
    a = full.reshape(WARPS, 16, k)
    dtype = {"f16": np.float16, "f32": np.float32, "s32": np.int32}[accumulator]
    result = np.zeros((WARPS, 32, 4), dtype).view(np.uint32)
    registers = [
        packed(kind, kept, A_LAYOUT[f"m16n8k{k // 2}", bits], k // 4),
        packed(kind, b, B_LAYOUT[bits], k // 4),
        packed_c(c), result, words,
    ]  # fmt: skip
    arrays = [machine.align(one) for one in registers]
    name = f"mma.{form}.sync.aligned.m16n8k{k}.row.col.{accumulator}.{kind}.{kind}.{accumulator}"
    text = program(machine, name, [one.shape[2] for one in arrays], selector)
    profile = machine.launch(text, grid=WARPS, block=32, arrays=arrays)
    d = unpacked_d(arrays[3], dtype, 16)
    exact = a @ values(kind, b) + c.astype(np.float64)
    if accumulator == "s32":
        assert np.array_equal(d, exact.astype(np.int64))
    else:
        slack = 1e-15 * (np.abs(a) @ np.abs(values(kind, b)))
        assert (((exact - slack).astype(dtype) <= d) & (d <= (exact + slack).astype(dtype))).all()
    assert sum(profile.counters.flops.values()) == WARPS * 16 * 8 * k


@pytest.mark.parametrize(
    ("shape", "types", "selector"),
    [
        ("m16n8k8", "f32.f16.f16.f32", 0),
        ("m16n8k16", "f32.f16.f16.f32", 4),
        ("m16n8k64", "s32.s8.s8.s32", 1),
    ],
)
def test_a_form_that_the_isa_has_not_is_refused_by_name(machine, shape, types, selector):
    k = int(shape.rpartition("k")[2])
    each = k * int(types.split(".")[1][1:]) // 128
    arrays = [machine.align(np.zeros((32, count), np.uint32)) for count in (each, each, 4, 4, 1)]
    text = program(machine, f"mma.sp.sync.aligned.{shape}.row.col.{types}", (each, each, 4, 4, 1), selector)
    with pytest.raises(UnsupportedOpcode, match=f"mma.sp.sync.aligned.{shape}"):
        machine.launch(text, block=32, arrays=arrays)
