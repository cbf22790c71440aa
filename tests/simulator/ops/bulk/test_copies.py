"""``cp.async.bulk`` and ``cp.async.bulk.tensor`` in PTX: places, bounds, completion, groups."""

import struct

import numpy as np
import pytest

from cutegen_nb.simulator.checkers.findings import Findings
from cutegen_nb.simulator.machine.machine import run
from cutegen_nb.simulator.ops.bulk.maps import TensorMapMisuse
from cutegen_nb.simulator.ptx.faults import Misaligned, OutOfBounds, UnsupportedOpcode
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


def loaded(machine, corner, *, swizzle=0, box=BOX):
    """What a box at some coordinates brings into shared memory, word by word."""
    source = machine.align(np.arange(1, ROWS * COLUMNS + 1, dtype=np.float32).reshape(ROWS, COLUMNS))
    words = box[0] * box[1]
    out = machine.align(np.full(words, -1, np.float32))
    body = f"""{BEFORE} mov.b32 %r7, {corner[0]}; mov.b32 %r8, {corner[1]};
    @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r2], {4 * words};
    @%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd2, {{%r7, %r8}}], [%r2];
    {WAIT} {STORE}"""
    findings = Findings()
    profile = launched(
        machine, body, arrays=[out, source], map_bytes=tensor_map(source, box, swizzle), block=words,
        findings=findings,
    )  # fmt: skip
    assert findings.all() == ()
    return source, out.reshape(box[1], box[0]), profile


def test_a_box_inside_arrives_row_by_row(machine):
    source, out, profile = loaded(machine, (12, 5))
    assert (out == source[5:9, 12:20]).all()
    assert profile.counters.gmem_load_bytes == 4 * 8 * 4
    assert list(profile.counters.gmem_accesses) == ["bulk-load", "store"]
    assert profile.counters.gmem_load_sectors == 8  # rows of 32 bytes at an offset of 16 bytes


@pytest.mark.parametrize("corner", [(36, 18), (-3, 2), (5, -2), (37, 5), (-100, 0), (3, 21)])
def test_elements_outside_the_tensor_arrive_as_zeros(machine, corner):
    source, out, _ = loaded(machine, corner)
    wide = np.zeros((ROWS + 300, COLUMNS + 300), np.float32)
    wide[150 : 150 + ROWS, 150 : 150 + COLUMNS] = source
    column, row = 150 + corner[0], 150 + corner[1]
    assert (out == wide[row : row + 4, column : column + 8]).all()


@pytest.mark.parametrize("swizzle", [1, 2, 3])
def test_a_swizzled_box_is_permuted_by_units_of_16_bytes(machine, swizzle):
    columns = 8 << (swizzle - 1)  # as wide as the swizzle
    source, out, _ = loaded(machine, (4, 2), swizzle=swizzle, box=(columns, 16))
    unit = np.arange(columns * 16 // 4)
    place = unit ^ (unit >> 3 & (1 << swizzle) - 1)
    flat = source[2:18, 4 : 4 + columns].reshape(-1, 4)
    wanted = np.empty_like(flat)
    wanted[place] = flat
    assert (out.reshape(-1, 4) == wanted).all()


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


def stored(machine, corner, between, *, what="cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"):
    target = machine.align(np.full((ROWS, COLUMNS), 100, np.float32))
    body = f"""{BEFORE} shl.b32 %r5, %r99, 2; add.u32 %r5, %r5, %r1; cvt.rn.f32.u32 %r6, %r99;
    st.shared.b32 [%r5], %r6; fence.proxy.async; bar.sync 0; mov.b32 %r7, {corner[0]}; mov.b32 %r8, {corner[1]};
    @%p1 {what} [%rd2, {{%r7, %r8}}], [%r1];
    @%p1 cp.async.bulk.commit_group; {between}"""
    findings = Findings()
    launched(machine, body, arrays=[target], map_bytes=tensor_map(target), findings=findings)
    return target, [one.kind for one in findings.all()]


def test_a_box_is_stored_where_it_lies_inside_the_tensor(machine):
    target, found = stored(machine, (36, 18), "@%p1 cp.async.bulk.wait_group 0;")
    wanted = np.full((ROWS, COLUMNS), 100, np.float32)
    wanted[18:, 36:] = np.arange(32).reshape(4, 8)[:2, :4]
    assert (target == wanted).all()
    assert found == []


def test_a_reduction_adds_to_the_tensor(machine):
    what = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
    target, found = stored(machine, (-2, 3), "@%p1 cp.async.bulk.wait_group 0;", what=what)
    wanted = np.full((ROWS, COLUMNS), 100, np.float32)
    wanted[3:7, :6] += np.arange(32).reshape(4, 8)[:, 2:]
    assert (target == wanted).all()
    assert found == []


OVERWRITE = "bar.sync 0; mov.b32 %r6, 0x40400000; st.shared.b32 [%r5], %r6;"


def test_a_source_overwritten_before_the_wait_is_what_is_stored(machine):
    target, found = stored(machine, (0, 0), OVERWRITE + "@%p1 cp.async.bulk.wait_group.read 0;")
    assert (target[:4, :8] == 3).all()
    assert found == []  # one warp: the store and the wait are its own


def test_a_source_overwritten_after_the_wait_is_not(machine):
    target, found = stored(machine, (0, 0), "@%p1 cp.async.bulk.wait_group.read 0;" + OVERWRITE)
    assert (target[:4, :8] == np.arange(32).reshape(4, 8)).all()
    assert found == []


def test_a_store_that_nobody_waits_for_is_complete_at_the_end(machine):
    target, _ = stored(machine, (0, 0), "")
    assert (target[:4, :8] == np.arange(32).reshape(4, 8)).all()


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


LOAD = "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes"


@pytest.mark.parametrize(
    ("instruction", "fault", "said"),
    [
        (LOAD + " [%r1+64], [%rd2, {%r7, %r7}], [%r2];", Misaligned, "128-byte access in shared memory"),
        (LOAD + " [%r1+8192], [%rd2, {%r7, %r7}], [%r2];", OutOfBounds, "copies 128 bytes at byte 8192"),
        (LOAD + " [%r1], [%rd2+8, {%r7, %r7}], [%r2];", TensorMapMisuse, "no multiple of 64"),
        (LOAD.replace("2d", "1d") + " [%r1], [%rd2, {%r7}], [%r2];", TensorMapMisuse, "1 coordinates for a tensor map of 2"),
        (LOAD + ".im2col [%r1], [%rd2, {%r7, %r7}], [%r2];", UnsupportedOpcode, "modifier .im2col"),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd90+4], 16, [%r2];", Misaligned,
         "16-byte access in global memory"),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd90+3200], 16, [%r2];", OutOfBounds,
         "reads 16 bytes"),
    ],
)  # fmt: skip
def test_wrong_operands_are_named(machine, instruction, fault, said):
    source = machine.align(np.zeros((ROWS, COLUMNS), np.float32))
    with pytest.raises(fault, match=said):
        launched(
            machine, f"{BEFORE} mov.b32 %r7, 0; @%p1 {instruction}", arrays=[source],
            map_bytes=tensor_map(source),
        )  # fmt: skip


@pytest.mark.parametrize("space", ["global", "shared::cta"])
def test_a_map_changed_in_memory_is_used_as_it_is_then(machine, space):
    """Another tensor, wider by half: address, extents and stride are replaced, then the map is copied back."""
    source = machine.align(np.arange(ROWS * 60, dtype=np.float32).reshape(ROWS, 60))
    stale = machine.align(np.zeros((ROWS, COLUMNS), np.float32))
    room = machine.align(np.frombuffer(tensor_map(stale), np.uint8).copy())
    out = machine.align(np.zeros(32, np.float32))
    change = "tensormap.replace.tile"
    into = "[%rd10]" if space == "global" else "[%r20]"
    changes = "".join(
        f"@%p1 {change}.{field}.{space}.b1024.{kind} {into}, {value};"
        for field, kind, value in (
            ("global_address", "b64", "%rd91"), ("global_dim", "b32", "0, 60"), ("global_stride", "b64", "0, 240"),
        )
    )  # fmt: skip
    copied = "".join(
        f"ld.global.b32 %r30, [%rd10+{4 * i}]; @%p1 st.shared.b32 [%r20+{4 * i}], %r30;" for i in range(32)
    )
    fence = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
    body = f""".shared .align 128 .b8 changed[128]; mov.u32 %r20, changed; mov.u64 %rd10, %rd92; {BEFORE} {copied}
    bar.sync 0; {changes}
    {"" if space == "global" else f"@%p1 {fence} [%rd10], [%r20], 128;"}
    fence.proxy.tensormap::generic.acquire.gpu [%rd10], 128; mov.b32 %r7, 48; mov.b32 %r8, 3;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r2], 128;
    @%p1 {LOAD} [%r1], [%rd10, {{%r7, %r8}}], [%r2]; {WAIT} {STORE}"""
    launched(machine, body, arrays=[out, source, room], map_bytes=bytes(128))
    assert (out.reshape(4, 8) == source[3:7, 48:56]).all()
