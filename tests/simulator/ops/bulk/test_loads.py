"""Boxes of a tensor map arrive in shared memory."""

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
