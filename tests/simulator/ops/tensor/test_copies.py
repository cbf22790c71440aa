"""``tcgen05.cp`` in PTX, and products whose blocks have scales that it copied."""

import numpy as np
import pytest

from cutegen_nb.simulator.checkers.findings import Findings
from cutegen_nb.simulator.ptx.faults import UnsupportedOpcode

LANES = np.arange(128)
TO = {
    # Shape and multicast → rows, 16-byte units of a row, and the row that each lane gets.
    "128x256b": (128, 2, LANES),
    "128x128b": (128, 1, LANES),
    "64x128b.warpx2::02_13": (64, 1, LANES % 64),
    "64x128b.warpx2::01_23": (64, 1, LANES // 64 * 32 + LANES % 32),
    "32x128b.warpx4": (32, 1, LANES % 32),
}
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


@pytest.mark.parametrize("shape", TO)
def test_rows_go_to_the_lanes_of_their_warps(machine, shape):
    count, units, row = TO[shape]
    rows = np.random.default_rng(1).integers(0, 256, (count, 16 * units), np.uint8)
    room, *offsets = k_major(rows)
    work = f"mov.b64 %rd5, {described(*offsets):#x}; @%p2 tcgen05.cp.cta_group::1.{shape} [%r50], %rd5;"
    findings = Findings()
    out = launched(machine, room, work, findings=findings)
    assert (out[:, : 4 * units] == rows.view(np.uint32)[row]).all()
    assert findings.all() == ()


def test_a_copy_read_before_its_commit_was_waited_for_is_found(machine):
    room, *offsets = k_major(np.zeros((32, 16), np.uint8))
    work = (
        f"mov.b64 %rd5, {described(*offsets):#x}; @%p2 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r50], %rd5;"
    )
    findings = Findings()
    launched(machine, room, work, wait="", findings=findings)
    assert [one.kind for one in findings.all()] == ["async-hazard"]


@pytest.mark.parametrize(("kind", "bits", "shift"), [("b4x16_p64", 4, 2), ("b6x16_p32", 6, 1)])
def test_packed_elements_lie_in_the_middle_of_their_bytes(machine, kind, bits, shift):
    elements = np.random.default_rng(2).integers(0, 1 << bits, (128, 2, 16))
    units = [sum(int(one) << bits * at for at, one in enumerate(unit)) for unit in elements.reshape(-1, 16)]
    octets = [list((unit | 0xCD << 120).to_bytes(16, "little")) for unit in units]  # padding does not matter
    room, *offsets = k_major(np.array(octets, np.uint8).reshape(128, 32))
    name = f"tcgen05.cp.cta_group::1.128x256b.b8x16.{kind}"
    out = launched(machine, room, f"mov.b64 %rd5, {described(*offsets):#x}; @%p2 {name} [%r50], %rd5;")
    held = np.ascontiguousarray(out[:, :8]).view(np.uint8)
    assert (held == elements.reshape(128, 32) << shift).all()


def test_a_copy_to_a_format_without_its_source_s_is_refused_by_name(machine):
    work = "mov.b64 %rd5, 0; @%p2 tcgen05.cp.cta_group::1.128x128b.b8x16 [%r50], %rd5;"
    with pytest.raises(UnsupportedOpcode, match=r"tcgen05\.cp.*b8x16"):
        launched(machine, np.zeros(1024, np.uint8), work)
