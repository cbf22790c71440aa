"""Findings are bounded, each named once a line."""

import numpy as np

from cutegen_nb.simulator.checkers.findings import Findings

INDEX = "mov.u32 %r97, %ctaid.x; mov.u32 %r96, %ntid.x; mad.lo.s32 %r98, %r97, %r96, %r99;"
BUFFER = ".shared .align 16 .b8 buffer[1024]; .shared .align 4 .b32 flag;"
MINE = "mov.b32 %r20, buffer; shl.b32 %r21, %r99, 2; add.s32 %r21, %r21, %r20;"
"""%r21: the thread's own word; %r22: that of the thread 32 further on, in a circle of 64."""
NEXT = "add.s32 %r23, %r99, 32; and.b32 %r23, %r23, 63; shl.b32 %r22, %r23, 2; add.s32 %r22, %r22, %r20;"
STORE = "mad.wide.u32 %rd80, %r98, 4, %rd90; st.global.b32 [%rd80], %r50;"


def findings(machine, body, *, arrays=None, grid=1, block=64):
    result = machine.align(np.zeros(grid * block, np.uint32)) if arrays is None else None
    given = [result] if arrays is None else arrays
    found = Findings()
    text = machine.kernel(INDEX + MINE + NEXT + body, parameters=len(given), before=BUFFER)
    machine.launch(text, block=block, grid=grid, arrays=given, findings=found)
    return [(one.kind, str(one.severity)) for one in found.all()], found.all(), given[0]


def test_findings_are_bounded_and_named_once_a_line(machine):
    body = "".join(
        f".loc 1 {line} 1\nld.shared.b32 %r50, [%r20+{4 * line}]; {STORE}" for line in range(60, 160)
    )
    body += body
    assert len(findings(machine, body)[0]) == 32
