"""A second run of a launch leaves memory and counts as the first."""

import numpy as np

from cutegen_nb.simulator.checkers.findings import Findings

INDEX = "mov.u32 %r97, %ctaid.x; mov.u32 %r96, %ntid.x; mad.lo.s32 %r98, %r97, %r96, %r99;"
BUFFER = ".shared .align 16 .b8 buffer[1024]; .shared .align 4 .b32 flag;"
MINE = "mov.b32 %r20, buffer; shl.b32 %r21, %r99, 2; add.s32 %r21, %r21, %r20;"
"""%r21: the thread's own word; %r22: that of the thread 32 further on, in a circle of 64."""
STORE = "mad.wide.u32 %rd80, %r98, 4, %rd90; st.global.b32 [%rd80], %r50;"


def test_a_second_run_leaves_memory_and_counts_as_the_first_left_them(machine):
    result = machine.align(np.zeros(64, np.uint32))
    text = machine.kernel(
        INDEX + MINE + f"ld.shared.b32 %r50, [%r21]; red.global.add.u32 [%rd90], 0; {STORE}",
        parameters=1,
        before=BUFFER,
    )
    found = Findings()
    profile = machine.launch(text, block=64, arrays=[result], findings=found)
    assert [one.kind for one in found.all()] == ["uninitialised-read"]
    assert (result == 0xFFFFFFFF).all()
    assert profile.counters.gmem_store_bytes == 64 * 4
