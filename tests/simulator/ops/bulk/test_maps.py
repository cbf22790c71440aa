"""Wrong operands of a tensor map are named."""

import struct

import numpy as np
import pytest

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
