"""Neighbouring products are computed together."""

import numpy as np

RANDOM = np.random.default_rng(11)

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


def unpacked_d(registers, dtype, rows):
    each = np.ascontiguousarray(registers).view(dtype)
    matrix = np.zeros((len(each), rows, 8), dtype)
    for lane in range(32):
        for i in range(rows // 4):
            matrix[:, *accumulator_place(i, lane >> 2, lane % 4)] = each[:, lane, i]
    return matrix


def chain_text(machine):
    """Two steps over K for a 2×2 grid of tiles, as compilers lay them out; D stays in registers between."""
    lines = ["mov.b32 %r90, 0;"]
    for index in range(12):
        lines += [f"mad.wide.u32 %rd1, %r99, 64, %rd90; ld.global.b32 %r{index}, [%rd1+{4 * index}];"]
    old = {(i, j): ["%r90"] * 4 for i in range(2) for j in range(2)}
    for step in range(2):
        for i in range(2):
            for j in range(2):
                new = [f"%r{20 + 16 * step + 8 * i + 4 * j + one}" for one in range(4)]
                a = [f"%r{4 * step + 2 * i}", f"%r{4 * step + 2 * i + 1}"]
                lines.append(
                    f"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {{{', '.join(new)}}}, "
                    f"{{{', '.join(a)}}}, {{%r{8 + 2 * step + j}}}, {{{', '.join(old[i, j])}}};"
                )
                old[i, j] = new
    lines.append("mad.wide.u32 %rd2, %r99, 64, %rd91;")
    stored = [one for i in range(2) for j in range(2) for one in old[i, j]]
    lines += [f"st.global.b32 [%rd2+{4 * at}], {one};" for at, one in enumerate(stored)]
    return machine.kernel("\n".join(lines), parameters=2)


def test_neighbouring_products_together_give_what_they_give_one_by_one(machine):
    inputs = machine.align(RANDOM.standard_normal((64, 32)).astype(np.float16))
    result = machine.align(np.zeros((64, 4, 4), np.float32))
    machine.launch(chain_text(machine), block=64, arrays=[inputs, result])
    words = inputs.view(np.uint32).reshape(2, 32, 16)
    layout_a, layout_b = A_LAYOUT["m16n8k8", 16], B_LAYOUT["m16n8k8", 16]
    for warp in range(2):
        for i in range(2):
            for j in range(2):
                want = np.zeros((16, 8), np.float64)
                for step in range(2):
                    a = unpack_half(
                        words[warp, :, 4 * step + 2 * i : 4 * step + 2 * i + 2], layout_a, (16, 8)
                    )
                    b = unpack_half(words[warp, :, 8 + 2 * step + j : 9 + 2 * step + j], layout_b, (8, 8))
                    want = (a @ b + want).astype(np.float32).astype(np.float64)
                registers = result[warp * 32 : warp * 32 + 32, 2 * i + j].view(np.uint32)[None]
                assert np.array_equal(unpacked_d(registers, np.float32, 16)[0], want.astype(np.float32))


def unpack_half(registers, layout, shape):
    elements = np.ascontiguousarray(registers).view(np.float16)
    matrix = np.zeros(shape)
    for lane in range(32):
        for i in range(elements.shape[1]):
            matrix[layout(i, lane >> 2, lane % 4)] = elements[lane, i]
    return matrix
