"""Races and uninitialised reads in shared memory."""

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


def test_one_warp_alone_never_races(machine):
    assert findings(machine, EXCHANGE.format(""), block=32)[0] == [("uninitialised-read", "decides")]
    body = f"st.shared.b32 [%r21], %r99; ld.shared.b32 %r50, [%r20+124]; {STORE}"
    assert findings(machine, body, block=32)[0] == []


def test_warps_that_store_one_value_do_not_race(machine):
    body = f"st.shared.b32 [flag], 5; ld.shared.b32 %r50, [flag]; {STORE}"
    assert findings(machine, body)[0] == []
    assert findings(machine, body.replace("[flag], 5", "[flag], %r99"))[0] == [("race", "decides")]


def test_a_store_that_changes_nothing_after_a_read_is_no_race(machine):
    body = f"""
    st.shared.b32 [%r21], 9; bar.sync 0; ld.shared.b32 %r50, [%r22];
    mov.b32 %r51, {{}}; st.shared.b32 [%r21], %r51; {STORE}"""
    assert findings(machine, body.format("9"))[0] == []
    assert findings(machine, body.format("10"))[0] == [("race", "decides")]


def test_ctas_that_go_different_ways_are_watched_one_by_one(machine):
    body = f"""
    setp.eq.u32 %p1, %r97, 1; st.shared.b32 [%r21], %r99;
    @%p1 bra LATE;
    bar.sync 0;
LATE: ld.shared.b32 %r50, [%r22]; {STORE}"""
    _, every, _ = findings(machine, body, grid=3)
    assert [(one.kind, one.cta) for one in every] == [("race", (1, 0, 0))]
    assert findings(machine, body.replace("%r97, 1;", "%r97, 9;"), grid=3)[0] == []


def test_addresses_that_differ_between_ctas_are_watched_cta_by_cta(machine):
    body = f"""
    shl.b32 %r40, %r97, 8; add.s32 %r41, %r21, %r40; add.s32 %r42, %r22, %r40;
    st.shared.b32 [%r41], %r99; {{}} ld.shared.b32 %r50, [%r42]; {STORE}"""
    assert findings(machine, body.format("bar.sync 0;"), grid=3)[0] == []
    assert findings(machine, body.format(""), grid=3)[0] == [("race", "decides")]


def test_copied_zeros_count_as_written(machine):
    source, result = machine.align(np.ones(64, np.uint32)), machine.align(np.zeros(64, np.uint32))
    body = f"""
    mad.wide.u32 %rd1, %r99, 4, %rd91; mov.b32 %r30, 0;
    cp.async.ca.shared.global [%r21], [%rd1], 4, %r30; cp.async.wait_all; bar.sync 0;
    ld.shared.b32 %r50, [%r22]; {STORE}"""
    assert findings(machine, body, arrays=[result, source])[0] == []
    assert (result == 0).all()


COPY = """
    mad.wide.u32 %rd1, %r99, 4, %rd91;
    cp.async.ca.shared.global [%r21], [%rd1], 4; cp.async.commit_group; {}
"""


@pytest.mark.parametrize(
    ("between", "kinds"),
    [
        ("cp.async.wait_group 0; bar.sync 0; ld.shared.b32 %r50, [%r22];", []),
        ("cp.async.wait_group 0; ld.shared.b32 %r50, [%r21];", []),
        ("bar.sync 0; cp.async.wait_group 0; ld.shared.b32 %r50, [%r22];", ["race"]),
        ("bar.sync 0; ld.shared.b32 %r50, [%r22];", ["async-hazard"]),
        ("st.shared.b32 [%r22], 1; mov.b32 %r50, 1;", ["async-hazard"]),
        ("cp.async.ca.shared.global [%r21], [%rd1], 4; mov.b32 %r50, 1;", ["async-hazard"]),
        ("mov.b32 %r50, 1;", []),
    ],
)
def test_a_copy_is_used_after_its_wait_and_by_others_after_a_barrier(machine, between, kinds):
    source, result = machine.align(np.arange(64, dtype=np.uint32)), machine.align(np.zeros(64, np.uint32))
    body = COPY.format(between) + STORE
    found, _, _ = findings(machine, body, arrays=[result, source])
    assert [kind for kind, _ in found] == kinds
