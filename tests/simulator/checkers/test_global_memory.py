"""Hazards between CTAs in global memory."""

import numpy as np
import pytest

from cutegen_nb.simulator.checkers.findings import Findings

INDEX = "mov.u32 %r97, %ctaid.x; mov.u32 %r96, %ntid.x; mad.lo.s32 %r98, %r97, %r96, %r99;"
BUFFER = ".shared .align 16 .b8 buffer[1024]; .shared .align 4 .b32 flag;"
MINE = "mov.b32 %r20, buffer; shl.b32 %r21, %r99, 2; add.s32 %r21, %r21, %r20;"
"""%r21: the thread's own word; %r22: that of the thread 32 further on, in a circle of 64."""
NEXT = "add.s32 %r23, %r99, 32; and.b32 %r23, %r23, 63; shl.b32 %r22, %r23, 2; add.s32 %r22, %r22, %r20;"


def findings(machine, body, *, arrays=None, grid=1, block=64):
    result = machine.align(np.zeros(grid * block, np.uint32)) if arrays is None else None
    given = [result] if arrays is None else arrays
    found = Findings()
    text = machine.kernel(INDEX + MINE + NEXT + body, parameters=len(given), before=BUFFER)
    machine.launch(text, block=block, grid=grid, arrays=given, findings=found)
    return [(one.kind, str(one.severity)) for one in found.all()], found.all(), given[0]


@pytest.mark.parametrize(
    ("extra", "kinds"),
    [
        ("", ["cta-order"]),
        ("red.global.add.u32 [%rd90+1024], 1;", []),
        ("fence.acq_rel.gpu;", []),
        ("fence.proxy.async; fence.mbarrier_init.release.cluster;", ["cta-order"]),
    ],
)
def test_ctas_may_share_a_place_where_something_can_order_them(machine, extra, kinds):
    result = machine.align(np.zeros(512, np.uint32))
    body = f"{extra} mad.wide.u32 %rd80, %r99, 4, %rd90; st.global.b32 [%rd80], %r97;"
    assert [kind for kind, _ in findings(machine, body, arrays=[result], grid=4)[0]] == kinds


@pytest.mark.parametrize("value", ["7", "%r99"])
def test_ctas_that_store_the_same_to_one_place_are_let_off(machine, value):
    result = machine.align(np.zeros(64, np.uint32))
    body = f"mov.b32 %r50, {value}; mad.wide.u32 %rd80, %r99, 4, %rd90; st.global.b32 [%rd80], %r50;"
    assert findings(machine, body, arrays=[result], grid=4)[0] == []


def test_ctas_that_share_sectors_but_no_bytes_are_let_off(machine):
    result = machine.align(np.zeros(4 * 5, np.uint32))
    body = "mad.lo.s32 %r40, %r97, 5, %r99; mad.wide.u32 %rd80, %r40, 4, %rd90; st.global.b32 [%rd80], %r97;"
    body += "add.s32 %r41, %r97, 1; st.global.b32 [%rd80], %r41;"
    found, _, _ = findings(machine, body, arrays=[result], grid=4, block=5)
    assert found == []
    assert (result == np.repeat(np.arange(4) + 1, 5)).all()
