"""Clusters in PTX: addresses of other CTAs' shared memory, remote barriers, multicast, the cluster's barrier."""

import numpy as np
import pytest

from cutegen_nb.simulator.checkers.findings import Findings
from cutegen_nb.simulator.ptx.faults import Deadlock, OutOfBounds

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


@pytest.mark.parametrize(("grid", "cluster"), [(6, (2, 1, 1)), (8, (4, 1, 1)), ((4, 4, 1), (2, 2, 1))])
def test_each_cta_reads_what_the_next_one_of_its_cluster_wrote(machine, grid, cluster):
    findings = Findings()
    found = launched(
        machine, f"""shl.b32 %r7, %r10, 8; add.u32 %r7, %r7, %r99; st.shared.b32 [%r5], %r7; {MEET} {NEXT}
        mapa.shared::cluster.u32 %r8, %r5, %r6; ld.shared::cluster.b32 %r9, [%r8]; {MEET}
        st.global.b32 [%rd1], %r9;""",
        grid=grid, cluster=cluster, findings=findings,
    )  # fmt: skip
    extents = grid if isinstance(grid, tuple) else (grid, 1, 1)
    for number in range(len(found)):
        x, y = number % extents[0], number // extents[0]
        cx, cy = x % cluster[0], y % cluster[1]
        rank = (cx + cy * cluster[0] + 1) % (cluster[0] * cluster[1])
        other = (x - cx + rank % cluster[0]) + (y - cy + rank // cluster[0]) * extents[0]
        assert (found[number] == other * 256 + np.arange(32)).all()
    assert findings.all() == ()


def test_a_generic_address_reaches_another_cta_and_tells_its_rank(machine):
    found = launched(
        machine, f"""add.u32 %r7, %r3, 70; st.shared.b32 [%r5], %r7; {MEET} {NEXT}
        cvt.u64.u32 %rd2, %r5; cvta.shared.u64 %rd2, %rd2; mapa.u64 %rd3, %rd2, %r6; ld.b32 %r9, [%rd3];
        getctarank.u64 %r14, %rd3; mad.lo.u32 %r9, %r14, 1000, %r9; getctarank.u64 %r14, %rd2;
        mad.lo.u32 %r9, %r14, 100000, %r9; {MEET} st.global.b32 [%rd1], %r9;""",
    )  # fmt: skip
    assert found[:, 0].tolist() == [1071, 100070, 1071, 100070]


def test_atomics_and_stores_reach_another_cta(machine):
    found = launched(
        machine, f"""mov.b32 %r7, 5; st.shared.b32 [%r5], %r7; {MEET} {NEXT} mapa.shared::cluster.u32 %r8, %r5, %r6;
        red.shared::cluster.add.u32 [%r8], %r99; {MEET} st.shared::cluster.b32 [%r8+512], %r10; {MEET}
        ld.shared.b32 %r9, [%r5]; ld.shared.b32 %r14, [%r5+512]; mad.lo.u32 %r9, %r14, 1000, %r9;
        st.global.b32 [%rd1], %r9;""",
    )  # fmt: skip
    assert (found == 5 + np.arange(32) + 1000 * np.array([1, 0, 3, 2])[:, None]).all()


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


@pytest.mark.parametrize("use", ["ld.shared::cluster.b32 %r9, [%r8];", "st.shared::cluster.b32 [%r8], %r9;"])
def test_a_rank_beyond_the_cluster_is_out_of_bounds(machine, use):
    with pytest.raises(OutOfBounds, match="of a CTA that its cluster does not have"):
        launched(machine, f"mapa.shared::cluster.u32 %r8, %r5, 5; {use}")
