"""Clusters in PTX: addresses of other CTAs' shared memory, remote barriers, multicast, the cluster's barrier."""

import numpy as np

from cutegen_nb.simulator.checkers.findings import Findings

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


def test_an_arrival_from_another_cta_ends_a_wait(machine):
    found = launched(
        machine, f"""@%p1 mbarrier.init.shared.b64 [%r2], 64; {MEET} mov.b32 %r7, 0;
        ARRIVE: mapa.shared::cluster.u32 %r8, %r2, %r7;
        mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];
        add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, %r4; @%p2 bra ARRIVE;
        WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 0; @!%p3 bra WAIT;
        mov.b32 %r9, 1; st.global.b32 [%rd1], %r9; {MEET}""",
    )  # fmt: skip
    assert (found == 1).all()


def test_a_multicast_brings_the_same_bytes_to_every_cta_of_its_mask(machine):
    source = machine.align(np.arange(100, 164, dtype=np.int32))
    findings = Findings()
    found = launched(
        machine, """@%p1 mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
        barrier.cluster.arrive.relaxed; barrier.cluster.wait;
        @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r2], 128; setp.eq.u32 %p4, %r3, 1; and.pred %p4, %p4, %p1;
        mov.b16 %rs1, 3;
        @%p4 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd91+64], 128, [%r2], %rs1;
        WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 0; @!%p3 bra WAIT;
        ld.shared.b32 %r9, [%r5]; st.global.b32 [%rd1], %r9; barrier.cluster.arrive; barrier.cluster.wait;""",
        arrays=[source], findings=findings,
    )  # fmt: skip
    assert (found == source[16:48]).all()
    assert findings.all() == ()
