"""Barriers of a CTA: counts, votes, deadlocks."""

import numpy as np
import pytest

from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.simulator.ptx.faults import Deadlock

STORE = "mad.wide.u32 %rd80, %r98, 4, %rd90; st.global.b32 [%rd80], %r50;"
INDEX = "mov.u32 %r97, %ctaid.x; mov.u32 %r96, %ntid.x; mad.lo.s32 %r98, %r97, %r96, %r99;"


def outputs(machine, body, *, threads=64, ctas=1, before=""):
    result = machine.align(np.zeros(threads * ctas, np.uint32))
    text = machine.kernel(INDEX + body + STORE, parameters=1, before=before)
    profile = machine.launch(text, block=threads, grid=ctas, arrays=[result])
    return result.reshape(ctas, threads).astype(np.int64), profile


def test_warps_meet_at_a_barrier_written_twice(machine):
    body = """
    mov.b32 %r50, 0;
    setp.lt.u32 %p1, %r99, 32;
    @%p1 bra L0;
    st.shared.b32 [flag], 5;
    bar.sync 0;
    bra.uni L1;
L0: bar.sync 0;
    ld.shared.b32 %r50, [flag];
L1: """
    got, _ = outputs(machine, body, before=".shared .align 4 .b32 flag;")
    assert (got[0, :32] == 5).all()


def test_a_barrier_with_a_count_waits_for_that_many(machine):
    body = """
    mov.b32 %r50, 9;
    setp.lt.u32 %p1, %r99, 32;
    @!%p1 bra L0;
    st.shared.b32 [flag], 7;
    bar.arrive 1, 64;
    bra.uni L1;
L0: bar.sync 1, 64;
    ld.shared.b32 %r50, [flag];
L1: """
    got, _ = outputs(machine, body, before=".shared .align 4 .b32 flag;")
    assert (got[0] == [9] * 32 + [7] * 32).all()


def test_barrier_reductions_count_and_vote_over_the_cta(machine):
    body = """
    setp.lt.u32 %p1, %r99, 40;
    barrier.cta.red.popc.aligned.u32 %r50, 0, %p1;
    barrier.cta.red.and.aligned.pred %p2, 0, %p1;
    barrier.cta.red.or.aligned.pred %p3, 0, %p1;
    selp.b32 %r51, 1000, 0, %p2;
    selp.b32 %r52, 2000, 0, %p3;
    add.s32 %r50, %r50, %r51;
    add.s32 %r50, %r50, %r52;
    bar.red.popc.u32 %r53, 0, !%p1;
    mad.lo.s32 %r50, %r53, 10000, %r50;
"""
    got, _ = outputs(machine, body)
    assert (got == 242040).all()


def test_a_barrier_that_not_all_reach_is_a_deadlock_with_line_and_warps(machine):
    body = """
    mov.b32 %r50, 0;
    setp.ge.u32 %p1, %r99, 32;
    .loc 1 33 5
    @%p1 bra L0;
    bar.sync 1;
    bra.uni L1;
    .loc 1 44 5
L0: bar.sync 2;
L1: """
    with pytest.raises(Deadlock) as caught:
        outputs(machine, body)
    message = str(caught.value)
    assert caught.value.verdict is Verdict.DEADLOCK
    assert "warp 0" in message
    assert "warp 1" in message
    assert "candidate.py:33" in message
    assert "candidate.py:44" in message
    assert "barrier 1" in message


def test_a_barrier_inside_half_a_warp_is_reported(machine):
    body = """
    mov.b32 %r50, 0;
    setp.ge.u32 %p1, %r99, 16;
    @%p1 bra L0;
    .loc 1 77 5
    bar.sync 0;
L0: bar.sync 0;
"""
    with pytest.raises(Deadlock, match="Divergent barrier") as caught:
        outputs(machine, body)
    assert "candidate.py:77" in str(caught.value)
