"""Tensor maps that a kernel changes in memory."""

import struct

import numpy as np
import pytest

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


LOAD = "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes"


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
