"""Four small products of half precision in one warp."""

import numpy as np
import pytest

RANDOM = np.random.default_rng(11)
WARPS = 3


def accumulators(kind, shape):
    if kind == "s32":
        return RANDOM.integers(-(10**6), 10**6, shape).astype(np.int32)
    return RANDOM.standard_normal(shape).astype(
        {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
    )


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


def quad_places(kind, layout):
    """Row and column of the i-th element of a thread of mma.m8n8k4 with float16, as the ISA lists them."""

    def high(lane):
        return 0 if lane < 16 else 4

    return {
        ("a", "row"): lambda lane, i: (lane % 4 + high(lane), i),
        ("a", "col"): lambda lane, i: (i % 4 + high(lane), lane % 4),
        ("b", "row"): lambda lane, i: (lane % 4, i + high(lane)),
        ("b", "col"): lambda lane, i: (i, lane % 4 + high(lane)),
        ("c", "f16"): lambda lane, i: (lane % 4 + high(lane), i),
        ("c", "f32"): lambda lane, i: (
            (lane & 0b1) + (i & 0b10) + high(lane),
            (i & 0b100) + (lane & 0b10) + (i & 0b1),
        ),
    }[kind, layout]


def quad_elements(matrices, place, count):
    """(4, rows, columns) → each thread's elements, (32, count)."""
    each = np.zeros((32, count), matrices.dtype)
    for lane in range(32):
        for i in range(count):
            each[lane, i] = matrices[lane % 16 // 4][place(lane, i)]
    return each


@pytest.mark.parametrize("left", ["row", "col"])
@pytest.mark.parametrize("right", ["row", "col"])
@pytest.mark.parametrize(("d_kind", "c_kind"), [("f16", "f16"), ("f32", "f32"), ("f32", "f16")])
def test_four_small_products_of_half_precision_in_one_warp(machine, left, right, d_kind, c_kind):
    shapes = [(WARPS, 4, 8, 4), (WARPS, 4, 4, 8), (WARPS, 4, 8, 8)]
    a, b = (RANDOM.standard_normal(shape).astype(np.float16) for shape in shapes[:2])
    c = accumulators(c_kind, shapes[2])
    places = [quad_places("a", left), quad_places("b", right), quad_places("c", c_kind)]
    counts = [4, 4, 8]
    arrays = [
        np.stack([quad_elements(one, place, count) for one in matrices])
        for matrices, place, count in zip((a, b, c), places, counts, strict=True)
    ]
    d_dtype = {"f16": np.float16, "f32": np.float32}[d_kind]
    given = [machine.align(one.view(np.uint32)) for one in (*arrays, np.zeros((WARPS, 32, 8), d_dtype))]
    name = f"mma.sync.aligned.m8n8k4.{left}.{right}.{d_kind}.f16.f16.{c_kind}"
    text = program(machine, name, [one.shape[2] for one in given], [False] * 4)
    profile = machine.launch(text, grid=1, block=32 * WARPS, arrays=given)
    want = (a.astype(np.float64) @ b.astype(np.float64) + c).astype(d_dtype)
    for warp in range(WARPS):
        stored = quad_elements(want[warp], quad_places("c", d_kind), 8)
        assert np.array_equal(given[3][warp].view(d_dtype), stored)
    assert profile.counters.flops == {"tensor.f16": WARPS * 4 * 2 * 8 * 8 * 4}
