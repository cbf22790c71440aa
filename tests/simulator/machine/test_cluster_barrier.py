"""The barrier of a cluster."""

import numpy as np
import pytest

from cutegen_nb.simulator.ptx.faults import Deadlock

SETUP = """
.shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 gate;
mov.u32 %r1, tile; mov.u32 %r2, gate; setp.eq.u32 %p1, %r99, 0;
mov.u32 %r3, %cluster_ctarank; mov.u32 %r4, %cluster_nctarank;
shl.b32 %r5, %r99, 2; add.u32 %r5, %r5, %r1;
mov.u32 %r10, %ctaid.x; mov.u32 %r11, %nctaid.x; mov.u32 %r12, %ctaid.y; mad.lo.u32 %r10, %r12, %r11, %r10;
mad.lo.u32 %r13, %r10, 32, %r99; mad.wide.u32 %rd1, %r13, 4, %rd90;
"""
MEET = "barrier.cluster.arrive; barrier.cluster.wait;"


def launched(  # noqa: PLR0913 - a launch has this many parts
    machine, body, *, grid=4, cluster=(2, 1, 1), block=32, arrays=(), findings=None
):
    size = int(np.prod(grid))
    out = machine.align(np.zeros(size * 32, np.int32))
    machine.launch(
        machine.kernel(SETUP + body, parameters=1 + len(arrays)), grid=grid, block=block, cluster=cluster,
        arrays=[out, *arrays], findings=findings,
    )  # fmt: skip
    return out.reshape(size, 32)


def test_threads_that_exit_are_not_waited_for(machine):
    found = launched(machine, f"setp.lt.u32 %p2, %r99, 7; @%p2 exit; {MEET} st.global.b32 [%rd1], %r99;")
    assert (found[:, 7:] == np.arange(7, 32)).all()
    assert (found[:, :7] == 0).all()


@pytest.mark.parametrize(
    "body",
    [
        "barrier.cluster.wait;",
        "setp.eq.u32 %p2, %r3, 0; @%p2 bra ON; barrier.cluster.arrive; ON: barrier.cluster.wait;",
    ],
)
def test_a_cta_that_does_not_arrive_is_named(machine, body):
    with pytest.raises(Deadlock, match=r"of CTA \(0, 0, 0\) has not arrived"):
        launched(machine, body)
