"""Asynchronous stores to another CTA arrive with its barrier."""

import numpy as np
import pytest

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
NEXT = "add.u32 %r6, %r3, 1; rem.u32 %r6, %r6, %r4;"


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


@pytest.mark.parametrize(
    ("store", "bytes_each", "found"),
    [
        ("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r8], %r7, [%r14];", 4, lambda own, other: other),
        (("mov.b64 %rd2, {%r7, %r7}; st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%r8+512], {%rd2, %rd2}, [%r14];"
         "mov.b32 %r5, tile; mad.lo.u32 %r5, %r99, 16, %r5; add.u32 %r5, %r5, 524;"), 16, lambda own, other: other),
        ("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r8], %r7, [%r14];", 4, lambda own, other: own + other),
    ],
)  # fmt: skip
def test_an_asynchronous_store_arrives_with_the_barrier_of_its_cta(machine, store, bytes_each, found):
    findings = Findings()
    stored = store if bytes_each == 4 else "mad.lo.u32 %r8, %r99, 12, %r8; " + store
    result = launched(
        machine, f"""shl.b32 %r7, %r10, 8; add.u32 %r7, %r7, %r99; st.shared.b32 [%r5], %r7;
        @%p1 mbarrier.init.shared.b64 [%r2], 1; {MEET} {NEXT}
        @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r2], {32 * bytes_each};
        mapa.shared::cluster.u32 %r8, %r5, %r6; mapa.shared::cluster.u32 %r14, %r2, %r6; {stored}
        WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 0; @!%p3 bra WAIT;
        ld.shared.b32 %r9, [%r5]; st.global.b32 [%rd1], %r9; {MEET}""",
        findings=findings,
    )  # fmt: skip
    own = np.arange(4)[:, None] * 256 + np.arange(32)
    assert (result == found(own, own[[1, 0, 3, 2]])).all()
    assert findings.all() == ()


def test_bytes_are_copied_from_one_shared_memory_to_another(machine):
    findings = Findings()
    result = launched(
        machine, f"""shl.b32 %r7, %r10, 8; add.u32 %r7, %r7, %r99; st.shared.b32 [%r5], %r7;
        @%p1 mbarrier.init.shared.b64 [%r2], 1; fence.proxy.async; {MEET} {NEXT}
        @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r2], 64;
        add.u32 %r8, %r1, 512; mapa.shared::cluster.u32 %r8, %r8, %r6; mapa.shared::cluster.u32 %r14, %r2, %r6;
        @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r8], [%r1], 64, [%r14];
        WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 0; @!%p3 bra WAIT;
        setp.ge.u32 %p4, %r99, 16; @%p4 bra END; ld.shared.b32 %r9, [%r5+512]; st.global.b32 [%rd1], %r9; END: {MEET}""",
        findings=findings,
    )  # fmt: skip
    own = np.arange(4)[:, None] * 256 + np.arange(32)
    assert (result[:, :16] == own[[1, 0, 3, 2], :16]).all()
    assert findings.all() == ()
