"""``cp.async.bulk`` and ``cp.async.bulk.tensor`` in PTX: places, bounds, completion, groups."""

import struct

import numpy as np

from cutegen_nb.simulator.checkers.findings import Findings
from cutegen_nb.simulator.machine.machine import run
from cutegen_nb.simulator.ptx.parser import parse
from cutegen_nb.simulator.state.global_memory import GlobalMemory
from cutegen_nb.simulator.state.launch import Launch

ROWS, COLUMNS = 20, 40
BOX = (8, 4)  # elements of a row, rows


def tensor_map(array, box=BOX, swizzle=0, code=7):
    """A map of a two-dimensional array of float32 (code 7)."""
    rows, columns = array.shape
    words = [0] * 32
    words[0], words[1] = array.ctypes.data & 0xFFFFFFFF, array.ctypes.data >> 32
    words[2] = 0x2 | 1 << 4 | code << 7 | swizzle << 13
    words[3] = array.strides[0] // 16
    words[8], words[9] = columns - 1, rows - 1
    words[13], words[14] = box[0] - 1 << 24, box[1] - 1
    return struct.pack("<32I", *words)


BEFORE = """
.shared .align 1024 .b8 tile[4096]; .shared .align 8 .b64 gate;
mov.u32 %r1, tile; mov.u32 %r2, gate; setp.eq.u32 %p1, %r99, 0;
@%p1 mbarrier.init.shared.b64 [%r2], 1; bar.sync 0;
mov.b64 %rd1, map; cvta.param.u64 %rd2, %rd1;
"""
WAIT = "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra WAIT;"
STORE = """mad.wide.u32 %rd5, %r99, 4, %rd90; shl.b32 %r5, %r99, 2; add.u32 %r5, %r5, %r1;
ld.shared.b32 %r6, [%r5]; st.global.b32 [%rd5], %r6;"""


def launched(  # noqa: PLR0913 - a launch has this many parts
    machine, body, *, arrays, map_bytes, block=32, findings=None
):
    """Run a kernel whose first parameter is a tensor map; the arrays' addresses follow."""
    text = machine.kernel(body, parameters=len(arrays))
    module = parse(text.replace("kernel(", "kernel(.param .align 64 .b8 map[128], ", 1))
    memory, given = GlobalMemory(), [map_bytes]
    for index, array in enumerate(arrays):
        memory.register(array.ctypes.data, array.nbytes, f"tensor{index}")
        given.append(struct.pack("<Q", array.ctypes.data))
    launch = Launch(grid=(1, 1, 1), block=(block, 1, 1), dynamic_smem_bytes=0)
    return run(module, "kernel", launch, tuple(given), memory, findings=findings)


def test_a_read_before_the_wait_sees_the_old_contents_and_is_a_hazard(machine):
    source = machine.align(np.ones((ROWS, COLUMNS), np.float32))
    out = machine.align(np.zeros(32, np.float32))
    body = f"""{BEFORE} shl.b32 %r5, %r99, 2; add.u32 %r5, %r5, %r1; mov.b32 %r6, 0x40000000;
    st.shared.b32 [%r5], %r6; bar.sync 0; mov.b32 %r7, 0; fence.proxy.async;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r2], 128;
    @%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd2, {{%r7, %r7}}], [%r2];
    {STORE} {WAIT}"""
    findings = Findings()
    launched(machine, body, arrays=[out, source], map_bytes=tensor_map(source), findings=findings)
    assert (out == 2).all()
    (finding,) = findings.all()
    assert finding.kind == "async-hazard"
    assert "while the bulk copy (TMA) issued" in finding.message
    assert "cute.arch.mbarrier_wait" in finding.message


def test_a_copy_whose_bytes_the_phase_does_not_wait_for_stays_under_way(machine):
    """Two boxes go to one mbarrier, and only the bytes of the first are announced."""
    source = machine.align(np.ones((ROWS, COLUMNS), np.float32))
    out = machine.align(np.zeros(32, np.float32))
    copy = """@%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
    [{}], [%rd2, {{%r7, %r7}}], [%r2];"""
    body = f"""{BEFORE} mov.b32 %r7, 0; add.u32 %r9, %r1, 1024; mov.u32 %r10, %r1;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r2], 128;
    {copy.format("%r10")} {copy.format("%r9")} {WAIT} mov.u32 %r1, %r9; {STORE}"""
    findings = Findings()
    launched(machine, body, arrays=[out, source], map_bytes=tensor_map(source), findings=findings)
    assert [one.kind for one in findings.all()] == ["async-hazard"]


def test_bytes_are_copied_without_a_map(machine):
    source = machine.align(np.arange(64, dtype=np.float32))
    out = machine.align(np.zeros(32, np.float32))
    body = f"""{BEFORE} @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r2], 128;
    @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd91+64], 128, [%r2];
    {WAIT} {STORE} bar.sync 0;
    @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd91], [%r1], 64;
    @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;"""
    launched(machine, body, arrays=[out, source], map_bytes=bytes(128))
    assert (out == np.arange(16, 48)).all()
    assert (source[:16] == np.arange(16) + np.arange(16, 32)).all()
    assert (source[16:] == np.arange(16, 64)).all()
