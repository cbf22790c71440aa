"""Scales of blocks in tensor memory."""

import numpy as np
import pytest

from cutegen_nb.simulator.numbers.small_floats import VALUES, scale_values
from cutegen_nb.simulator.ops.tensor.factors import from_tensor_memory

START = """
.shared .align 1024 .b8 tile[{size}]; .shared .align 8 .b64 gate; .shared .align 4 .b32 place;
mov.u32 %r64, tile; mov.u32 %r62, gate; mov.u32 %r61, place; shr.u32 %r98, %r99, 5;
setp.eq.u32 %p1, %r98, 0; setp.eq.u32 %p2, %r99, 0; shl.b32 %r63, %r99, 2; cvt.u64.u32 %rd4, %r63;
add.u64 %rd3, %rd91, %rd4; add.u32 %r63, %r63, %r64; {loads}
@%p2 mbarrier.init.shared.b64 [%r62], 1; setp.ne.u32 %p5, 0, 0; @!%p1 bra NEXT;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r61], 64; NEXT: fence.proxy.async; bar.sync 0;
ld.shared.b32 %r50, [%r61]; mad.wide.u32 %rd2, %r99, 64, %rd90;
{work}
@%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r62];
{wait} tcgen05.fence::after_thread_sync; shl.b32 %r51, %r98, 21; add.u32 %r51, %r51, %r50;
tcgen05.ld.sync.aligned.32x32b.x16.b32 {{{registers}}}, [%r51]; {stores}
bar.sync 0; @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r50, 64;
"""
WAIT = "LOOP: mbarrier.try_wait.parity.shared.b64 %p3, [%r62], 0; @!%p3 bra LOOP;"


def launched(machine, room, work, *, wait=WAIT, findings=None):
    """The first 16 columns of tensor memory after some work on shared memory, (lanes, columns)."""
    room = np.concatenate([room, np.zeros(-len(room) % 1024, np.uint8)])
    loads = "".join(
        f"ld.global.b32 %r60, [%rd3+{512 * i}]; st.shared.b32 [%r63+{512 * i}], %r60;"
        for i in range(len(room) // 512)
    )
    text = START.format(
        size=len(room), loads=loads, work=work, wait=wait,
        registers=", ".join(f"%r{i}" for i in range(16)),
        stores="".join(f"st.global.b32 [%rd2+{4 * i}], %r{i};" for i in range(16)),
    )  # fmt: skip
    source, out = machine.align(room), machine.align(np.zeros((128, 16), np.uint32))
    machine.launch(machine.kernel(text, parameters=2), block=128, arrays=[out, source], findings=findings)
    return out


def k_major(rows):
    """Rows of whole 16-byte units without a swizzle, core matrices of 8 rows, units 128 bytes apart."""
    count, width = rows.shape
    units = width // 16
    return rows.reshape(count // 8, 8, units, 16).swapaxes(1, 2).ravel(), 128, 128 * units


def described(leading, stride, start=0):
    return start >> 4 | leading // 16 << 16 | stride // 16 << 32 | 1 << 46


@pytest.mark.parametrize(
    ("kind", "vector", "scale", "blocks"),
    [("mxf4nvf4", "4X", "ue4m3", 4), ("mxf4", "2X", "ue8m0", 2)],
)
def test_blocks_of_four_bits_are_scaled(machine, kind, vector, scale, blocks):
    """128 × 16 × 64: scales of row r in lane r mod 32 and word r div 32, those of B in the next words."""
    random = np.random.default_rng(2)
    a, b = random.integers(0, 16, (128, 64), np.uint8), random.integers(0, 16, (16, 64), np.uint8)
    low, high = (0x30, 0x48) if scale == "ue4m3" else (124, 131)
    sa, sb = random.integers(low, high, (128, 4), np.uint8), random.integers(low, high, (32, 4), np.uint8)
    left, right = (k_major(one[:, ::2] | one[:, 1::2] << 4) for one in (a, b))
    words = np.zeros((32, 32), np.uint8)  # 32 lanes of two units: four words of A's scales, one of B's
    for row in range(128):
        words[row % 32, row // 32 * 4 : row // 32 * 4 + 4] = sa[row]
    words[:, 16:20] = sb
    copied = [k_major(words[:, :16]), k_major(words[:, 16:])]
    parts = [left, right, *copied]
    starts = np.cumsum([0] + [-(-len(one[0]) // 1024) * 1024 for one in parts])
    room = np.zeros(starts[-1], np.uint8)
    for start, (one, *_) in zip(starts, parts, strict=False):
        room[start : start + len(one)] = one
    where = [described(*one[1:], int(start)) for start, one in zip(starts, parts, strict=False)]
    code = 1 << 7 | 1 << 10 | 16 >> 3 << 17 | 128 >> 7 << 27 | (scale == "ue8m0") << 23
    work = "".join(f"mov.b64 %rd{5 + i}, {one:#x};" for i, one in enumerate(where)) + (
        "@%p2 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r50+32], %rd7;"
        "@%p2 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r50+36], %rd8;"
        f"mov.b32 %r52, {code:#x}; @%p2 tcgen05.mma.cta_group::1.kind::{kind}.block_scale.scale_vec::{vector} "
        "[%r50], %rd5, %rd6, %r52, [%r50+32], [%r50+36], %p5;"
    )
    found = launched(machine, room, work).view(np.float32)
    x = VALUES["e2m1"][a] * np.repeat(scale_values(sa[:, :blocks], scale), 64 // blocks, axis=1)
    y = VALUES["e2m1"][b] * np.repeat(scale_values(sb[:16, :blocks], scale), 64 // blocks, axis=1)
    assert (found == (x @ y.T).astype(np.float32)).all()


PAIR = (
    # Both CTAs of a cluster have room, tensor memory and output of their own; the first one issues.
    ("add.u64 %rd3, %rd91, %rd4;", "mov.u32 %r70, %ctaid.x; mad.wide.u32 %rd3, %r70, {size}, %rd91; add.u64 %rd3, %rd3, %rd4;"),
    ("%rd2, %r99, 64, %rd90;", "%rd2, %r70, 8192, %rd90; mad.wide.u32 %rd2, %r99, 64, %rd2; {first}"),
    ("shared::cluster.b64 [%r62];", "shared::cluster.multicast::cluster.b64 [%r62], %rs9;"),
    ("bar.sync 0; @%p1 tcgen05.dealloc", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; @%p1 tcgen05.dealloc"),
    ("cta_group::1", "cta_group::2"),
)  # fmt: skip


def launched_by_two(machine, rooms, work):
    """The first 16 columns of tensor memory of both CTAs, (CTAs, lanes, columns)."""
    text = START
    for old, new in PAIR:
        assert old in text
        text = text.replace(old, new)
    size = rooms.shape[1]
    text = text.format(
        first="setp.eq.u32 %p6, %r70, 0; and.pred %p2, %p2, %p6; mov.b16 %rs9, 3; barrier.cluster.arrive.aligned; "
        "barrier.cluster.wait.aligned;",
        size=size,
        loads="".join(
            f"ld.global.b32 %r60, [%rd3+{512 * i}]; st.shared.b32 [%r63+{512 * i}], %r60;"
            for i in range(size // 512)
        ),
        work=work,
        wait=WAIT,
        registers=", ".join(f"%r{i}" for i in range(16)),
        stores="".join(f"st.global.b32 [%rd2+{4 * i}], %r{i};" for i in range(16)),
    )
    source, out = machine.align(rooms), machine.align(np.zeros((2, 128, 16), np.uint32))
    machine.launch(
        machine.kernel(text, parameters=2), block=128, grid=2, cluster=(2, 1, 1), arrays=[out, source]
    )
    return out


def test_scales_of_the_second_half_of_the_columns_lie_in_the_upper_lanes(machine):
    """128 × 32 × 64 by two CTAs: 64 rows each, columns 0 to 15 in lanes 0 to 63, the others above."""
    random = np.random.default_rng(3)
    a, b = random.integers(0, 16, (128, 64), np.uint8), random.integers(0, 16, (32, 64), np.uint8)
    sa, sb = (random.integers(0x30, 0x48, (count, 4), np.uint8) for count in (128, 32))
    rows, halves = np.arange(128) // 64, np.arange(32) // 16
    rooms = []
    for cta in range(2):
        of_a, of_b = np.zeros((32, 16), np.uint8), np.zeros((64, 16), np.uint8)
        for row in range(64):
            of_a[row % 32, row // 32 * 4 : row // 32 * 4 + 4] = sa[64 * cta + row]
        for column in range(32):
            of_b[column // 16 * 32 + column % 16, :4] = sb[column]
        packed = [one[:, ::2] | one[:, 1::2] << 4 for one in (a[rows == cta], b[halves == cta])]
        parts = [k_major(one) for one in (*packed, of_a, of_b)]
        starts = np.cumsum([0] + [-(-len(one[0]) // 1024) * 1024 for one in parts])
        room = np.zeros(starts[-1], np.uint8)
        for start, (one, *_) in zip(starts, parts, strict=False):
            room[start : start + len(one)] = one
        rooms.append(room)
    where = [described(*one[1:], int(start)) for start, one in zip(starts, parts, strict=False)]
    code = 1 << 7 | 1 << 10 | 32 >> 3 << 17 | 128 >> 7 << 27
    work = "".join(f"mov.b64 %rd{5 + i}, {one:#x};" for i, one in enumerate(where)) + (
        "@%p2 tcgen05.cp.cta_group::2.32x128b.warpx4 [%r50+32], %rd7;"
        "@%p2 tcgen05.cp.cta_group::2.64x128b.warpx2::01_23 [%r50+36], %rd8;"
        f"mov.b32 %r52, {code:#x}; @%p2 tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.scale_vec::4X "
        "[%r50], %rd5, %rd6, %r52, [%r50+32], [%r50+36], %p5;"
    )
    found = launched_by_two(machine, np.stack(rooms), work).view(np.float32)
    x = VALUES["e2m1"][a] * np.repeat(scale_values(sa, "ue4m3"), 16, axis=1)
    y = VALUES["e2m1"][b] * np.repeat(scale_values(sb, "ue4m3"), 16, axis=1)
    whole = (x @ y.T).astype(np.float32)
    for cta in range(2):
        own = whole[64 * cta : 64 * cta + 64]
        assert (found[cta] == np.concatenate((own[:, :16], own[:, 16:]))).all()


@pytest.mark.parametrize(("kind", "bits", "shift"), [("e2m1", 4, 2), ("e2m3", 6, 1), ("e3m2", 6, 1)])
def test_narrow_elements_of_a_in_tensor_memory_have_a_byte_each(kind, bits, shift):
    codes = np.random.default_rng(3).integers(0, 1 << bits, (2, 5, 32)).astype(np.uint8)
    words = np.ascontiguousarray((codes << shift).view(np.uint32).swapaxes(1, 2))
    assert np.array_equal(from_tensor_memory(words, kind, packed=False), VALUES[kind][codes])


def test_elements_of_four_bits_are_packed_where_the_kind_packs_them():
    codes = np.random.default_rng(4).integers(0, 16, (2, 5, 64)).astype(np.uint8)
    octets = codes[..., ::2] | codes[..., 1::2] << 4
    words = np.ascontiguousarray(octets.view(np.uint32).swapaxes(1, 2))
    assert np.array_equal(from_tensor_memory(words, "e2m1", packed=True), VALUES["e2m1"][codes])
