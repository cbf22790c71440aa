"""Order between warps: barriers, fences, locks, mbarriers."""

import numpy as np
import pytest

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


EXCHANGE = f"st.shared.b32 [%r21], %r99; {{}} ld.shared.b32 %r50, [%r22]; {STORE}"


@pytest.mark.parametrize(
    ("between", "kinds"),
    [
        ("bar.sync 0;", []),
        ("bar.sync 3, 64;", []),
        ("barrier.cta.sync 0;", []),
        ("bar.warp.sync -1;", ["race"]),
        ("membar.cta;", ["race"]),
        ("", ["race"]),
    ],
)
def test_only_a_barrier_of_the_cta_orders_its_warps(machine, between, kinds):
    found, _, result = findings(machine, EXCHANGE.format(between), grid=3)
    assert [kind for kind, _ in found] == kinds
    assert (result.reshape(3, 64) == (np.arange(64) + 32) % 64).all()


def test_a_flag_that_a_fence_stands_before_orders_who_sees_it(machine):
    body = f"""
    setp.ge.u32 %p1, %r99, 32; setp.eq.u32 %p2, %r99, 0;
    @%p1 bra WAIT;
    st.shared.b32 [%r21], %r99;
    bar.warp.sync -1;
    membar.cta;
    @%p2 st.volatile.shared.b32 [flag], 1;
    bra.uni DONE;
WAIT:
    ld.volatile.shared.b32 %r30, [flag];
    setp.ne.u32 %p3, %r30, 1;
    @%p3 bra WAIT;
    ld.shared.b32 %r50, [%r22];
    {STORE}
DONE: """
    found, _, result = findings(machine, body)
    assert [kind for kind, _ in found if kind == "race"] == []
    assert (result[32:] == np.arange(32)).all()


@pytest.mark.long
def test_a_lock_that_holders_take_in_turn_is_no_race(machine):
    body = f"""
    st.shared.b32 [%r21], 0; st.shared.b32 [flag], 0; bar.sync 0;
    and.b32 %r31, %r99, 31; setp.ne.u32 %p1, %r31, 0; @%p1 bra DONE;
TAKE: atom.shared.cas.b32 %r32, [flag], 0, 1; setp.ne.u32 %p2, %r32, 0; @%p2 bra TAKE;
    membar.cta;
    ld.shared.b32 %r33, [%r20]; add.s32 %r33, %r33, 1; st.shared.b32 [%r20], %r33;
    membar.cta;
    atom.shared.exch.b32 %r34, [flag], 0;
DONE: bar.sync 0; ld.shared.b32 %r50, [%r20]; {STORE}"""
    found, _, result = findings(machine, body, block=128)
    assert found == []
    assert (result == 4).all()


def test_threads_that_name_different_barriers_meet_at_their_own(machine):
    body = f"""
    setp.ge.u32 %p1, %r99, 32; selp.b32 %r31, 2, 1, %p1;
    and.b32 %r32, %r99, 3; setp.eq.u32 %p2, %r32, 0; setp.lt.u32 %p3, %r99, 16; or.pred %p2, %p2, %p3;
    barrier.cta.red.popc.aligned.u32 %r50, %r31, 32, %p2; {STORE}"""
    found, _, result = findings(machine, body)
    assert found == []
    assert result.tolist() == [16 + 4] * 32 + [8] * 32


def test_counters_in_groups_that_wait_for_their_own_barrier(machine):
    # Two groups of two warps count in words of their own, each behind its own barrier, several times over.
    body = f"""
    shr.u32 %r40, %r99, 6; add.s32 %r41, %r40, 1; shl.b32 %r42, %r40, 2; add.s32 %r42, %r42, %r20; mov.b32 %r44, 0;
AGAIN: st.shared.b32 [%r42], 0; barrier.cta.sync %r41, 64;
    atom.shared.add.u32 %r43, [%r42], 1; {{}}
    ld.shared.b32 %r50, [%r42]; barrier.cta.sync %r41, 64;
    add.s32 %r44, %r44, 1; setp.lt.u32 %p1, %r44, 3; @%p1 bra AGAIN; {STORE}"""
    found, _, result = findings(machine, body.format("barrier.cta.sync %r41, 64;"), block=128)
    assert found == []
    assert (result == 64).all()
    assert findings(machine, body.format("bar.warp.sync -1;"), block=128)[0] == [("race", "decides")]


PIPE = """
    mad.wide.u32 %rd1, %r99, 4, %rd91; mov.b32 %r40, buffer; add.s32 %r40, %r40, 768;
    setp.eq.u32 %p1, %r99, 0; @%p1 mbarrier.init.shared.b64 [%r40], 64; bar.sync 0;
    {}
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r40], 0; @!%p2 bra WAIT;
    ld.shared.b32 %r50, [%r22];
"""


@pytest.mark.parametrize(
    ("produce", "kinds"),
    [
        ("st.shared.b32 [%r21], %r99; mbarrier.arrive.shared.b64 %rd5, [%r40];", []),
        ("mbarrier.arrive.shared.b64 %rd5, [%r40]; st.shared.b32 [%r21], %r99;", ["race"]),
        (
            "cp.async.ca.shared.global [%r21], [%rd1], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [%r40];",
            [],
        ),
        (
            "mbarrier.arrive.shared.b64 %rd5, [%r40]; cp.async.ca.shared.global [%r21], [%rd1], 4;",
            ["async-hazard"],
        ),
    ],
)
def test_an_mbarrier_orders_what_was_done_before_the_arrival(machine, produce, kinds):
    source, result = machine.align(np.arange(64, dtype=np.uint32)), machine.align(np.zeros(64, np.uint32))
    found, _, _ = findings(machine, PIPE.format(produce) + STORE, arrays=[result, source])
    assert [kind for kind, _ in found] == kinds
