"""``mma.sync`` with block scales: fragments and scales of threads, against NumPy."""

import numpy as np
import pytest

from cutegen_nb.simulator.numbers.small_floats import VALUES, scale_values
from cutegen_nb.simulator.ptx.faults import UnsupportedOpcode

LANE = np.arange(32)
GROUP, PLACE = LANE // 4, LANE % 4


def packed(codes, rows, bits):
    """Registers of a fragment, (threads, registers), from codes (rows, K)."""
    per = 32 // bits
    halves = rows // 8
    count = codes.shape[1] // (4 * per) * halves
    words = np.zeros((32, count), np.uint32)
    for register in range(count):
        row = GROUP + register % halves * 8
        for element in range(per):
            column = 4 * per * (register // halves) + per * PLACE + element
            words[:, register] |= codes[row, column].astype(np.uint32) << np.uint32(bits * element)
    return words


def multiplied(  # noqa: PLR0913, PLR0917 - an mma has this many parts
    machine, name, a, b, c, scales, chosen
):
    """D of one warp: the operands are registers of each thread, the scales words of each thread."""
    given = np.concatenate([a, b, c.view(np.uint32), *scales], axis=1)
    source, out = machine.align(given), machine.align(np.zeros((32, 4), np.float32))
    loads = "".join(f"ld.global.b32 %r{i + 1}, [%rd1+{4 * i}];" for i in range(given.shape[1]))
    names = iter(f"%r{i + 1}" for i in range(given.shape[1]))
    parts = ["{" + ", ".join(next(names) for _ in range(one.shape[1])) + "}" for one in (a, b, c)]
    more = "".join(f", {{{next(names)}}}, {{{first}, {thread}}}" for first, thread in chosen)
    stores = "".join(f"st.global.b32 [%rd2+{4 * i}], %r{60 + i};" for i in range(4))
    body = f"""mad.wide.u32 %rd1, %r99, {given.shape[1] * 4}, %rd91; mad.wide.u32 %rd2, %r99, 16, %rd90; {loads}
    {name} {{%r60, %r61, %r62, %r63}}, {", ".join(parts)}{more}; {stores}"""
    machine.launch(machine.kernel(body, parameters=2), arrays=[out, source])
    result = np.zeros((16, 8), np.float32)
    for register in range(4):
        result[GROUP + register // 2 * 8, 2 * PLACE + register % 2] = out[:, register]
    return result


def test_four_bits_with_a_scale_for_each_sixteen(machine):
    random = np.random.default_rng(1)
    a, b = random.integers(0, 16, (16, 64)), random.integers(0, 16, (8, 64))
    sa, sb = random.integers(0x30, 0x48, (16, 4)), random.integers(0x30, 0x48, (8, 4))
    # The upper pair of each quad has the rows' scales, its third thread the columns'.
    words_a, words_b = np.full((2, 32, 1), 0x7F7F7F7F, np.uint32)
    for lane in range(32):
        if lane % 4 >= 2:
            words_a[lane] = sa[lane // 4 + lane % 2 * 8].astype(np.uint8).view(np.uint32)
        if lane % 4 == 2:
            words_b[lane] = sb[lane // 4].astype(np.uint8).view(np.uint32)
    c = random.integers(-4, 5, (32, 4)).astype(np.float32)
    name = (
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
    )
    found = multiplied(
        machine, name, packed(a, 16, 4), packed(b, 8, 4), c, (words_a, words_b), ((0, 1), (0, 2))
    )
    left = VALUES["e2m1"][a].astype(float) * np.repeat(scale_values(sa.astype(np.uint8), "ue4m3"), 16, axis=1)
    right = VALUES["e2m1"][b].astype(float) * np.repeat(
        scale_values(sb.astype(np.uint8), "ue4m3"), 16, axis=1
    )
    before = np.zeros((16, 8))
    for register in range(4):
        before[GROUP + register // 2 * 8, 2 * PLACE + register % 2] = c[:, register]
    assert (found == (left @ right.T + before).astype(np.float32)).all()


def test_bytes_of_six_and_four_bits_with_one_scale(machine):
    random = np.random.default_rng(2)
    a, b = random.integers(0, 64, (16, 32)), random.integers(0, 16, (8, 32))
    sa, sb = random.integers(120, 134, 16), random.integers(120, 134, 8)
    words_a, words_b = np.zeros((2, 32, 1), np.uint32)
    for lane in range(32):
        words_a[lane] = int(sa[lane // 4 + lane % 2 * 8]) << 16 if lane % 4 < 2 else 0
        words_b[lane] = int(sb[lane // 4]) << 8 if lane % 4 == 0 else 0
    name = (
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e3m2.e2m1.f32.ue8m0"
    )
    # A 4-bit element lies in bits 2 to 5 of its byte.
    found = multiplied(
        machine, name, packed(a, 16, 8), packed(b << 2, 8, 8), np.zeros((32, 4), np.float32),
        (words_a, words_b), ((2, 0), (1, 0)),
    )  # fmt: skip
    left = VALUES["e3m2"][a] * np.exp2(sa - 127.0)[:, None]
    right = VALUES["e2m1"][b] * np.exp2(sb - 127.0)[:, None]
    assert (found == (left @ right.T).astype(np.float32)).all()


def test_a_type_that_the_kind_has_not_is_refused(machine):
    registers = [np.zeros((32, count), np.uint32) for count in (4, 2, 4)]
    name = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.f16.e2m1.f32"
    with pytest.raises(UnsupportedOpcode, match="kind::f8f6f4"):
        multiplied(machine, name, *registers, (), ())
