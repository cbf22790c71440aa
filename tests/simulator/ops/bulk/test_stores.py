"""Bulk stores from shared memory, and what happens to their source before the wait."""

import struct

import numpy as np
import pytest

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


FENCE = "fence.proxy.async;"


def stored(
    machine,
    corner,
    between,
    *,
    what="cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group",
    fences=(FENCE, ""),
):
    target = machine.align(np.full((ROWS, COLUMNS), 100, np.float32))
    body = f"""{BEFORE} shl.b32 %r5, %r99, 2; add.u32 %r5, %r5, %r1; cvt.rn.f32.u32 %r6, %r99;
    st.shared.b32 [%r5], %r6; {fences[0]} bar.sync 0; {fences[1]} mov.b32 %r7, {corner[0]}; mov.b32 %r8, {corner[1]};
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


@pytest.mark.parametrize(
    ("fences", "found"),
    [
        (("", ""), ["missing-proxy-fence"]),
        (("fence.acq_rel.cta;", ""), ["missing-proxy-fence"]),
        ((FENCE, ""), []),
        (("", FENCE), []),  # by the thread that stores, after the barrier
    ],
    ids=["none", "another", "before the barrier", "after it"],
)
def test_a_store_of_what_threads_wrote_needs_a_proxy_fence(machine, fences, found):
    _, kinds = stored(machine, (0, 0), "@%p1 cp.async.bulk.wait_group 0;", fences=fences)
    assert kinds == found


OVERWRITE = "bar.sync 0; mov.b32 %r6, 0x40400000; st.shared.b32 [%r5], %r6;"


def test_a_source_overwritten_before_the_wait_is_what_is_stored(machine):
    target, found = stored(machine, (0, 0), OVERWRITE + "@%p1 cp.async.bulk.wait_group.read 0;")
    assert (target[:4, :8] == 3).all()
    assert found == ["missing-proxy-fence"]  # no race: the store and the wait are of one warp


def test_a_source_overwritten_after_the_wait_is_not(machine):
    target, found = stored(machine, (0, 0), "@%p1 cp.async.bulk.wait_group.read 0;" + OVERWRITE)
    assert (target[:4, :8] == np.arange(32).reshape(4, 8)).all()
    assert found == []


def test_a_store_that_nobody_waits_for_is_complete_at_the_end(machine):
    target, _ = stored(machine, (0, 0), "")
    assert (target[:4, :8] == np.arange(32).reshape(4, 8)).all()
