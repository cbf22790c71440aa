"""Shuffles, votes, matches and reductions over warps, full warps and the rest of one."""

import numpy as np
import pytest

from cutegen_nb.simulator.checkers.findings import Findings

STORE = "mad.wide.u32 %rd80, %r99, 4, %rd90; st.global.b32 [%rd80], %r50;"


def outputs(machine, body, threads=64):
    result = machine.align(np.zeros(threads, np.uint32))
    machine.launch(machine.kernel(body + STORE, parameters=1), block=threads, arrays=[result])
    return result.astype(np.int64)


def source_of(mode, lane, amount, control):
    clamp, segment = control & 31, control >> 8 & 31
    greatest = (lane & segment) | (clamp & ~segment)
    source = {
        "up": lane - amount,
        "down": lane + amount,
        "bfly": lane ^ amount,
        "idx": (lane & segment) | (amount & ~segment),
    }[mode]
    inside = source >= greatest if mode == "up" else source <= greatest
    return (source if inside else lane), inside


@pytest.mark.parametrize("amount", [0, 1, 2, 3, 4, 5, 8, 16, 31])
@pytest.mark.parametrize(
    ("mode", "control"),
    [
        ("up", 0),
        ("down", 31),
        ("bfly", 31),
        ("idx", 31),
        ("up", 0x1800),
        ("down", 0x181F),
        ("bfly", 0x181F),
        ("idx", 0x181F),
    ],
)
def test_shuffle_reads_the_lane_that_the_isa_names(machine, mode, control, amount):
    body = f"""mul.lo.s32 %r1, %r99, 5; shfl.sync.{mode}.b32 %r50|%p1, %r1, {amount}, {control}, -1;
    selp.b32 %r2, 100000, 0, %p1; add.s32 %r50, %r50, %r2;"""
    got = outputs(machine, body)
    for thread in range(64):
        source, inside = source_of(mode, thread % 32, amount, control)
        assert got[thread] == 5 * (thread // 32 * 32 + source) + (100000 if inside else 0)


def test_shuffle_with_a_lane_of_each_threads_own(machine):
    got = outputs(machine, "mad.lo.s32 %r1, %r99, 7, 3; shfl.sync.idx.b32 %r50, %r99, %r1, 31, -1;")
    assert got.tolist() == [t // 32 * 32 + (7 * t + 3) % 32 for t in range(64)]


@pytest.mark.parametrize(("used", "kinds"), [("%r50", ["uninitialised-read"]), ("%r1", [])])
def test_the_value_of_a_lane_that_does_not_take_part_must_not_matter(machine, used, kinds):
    """The upper half of the warp exits; the lower half shuffles with it."""
    body = f"""mov.b32 %r1, %r99; setp.lt.u32 %p1, %r99, 16; @!%p1 ret;
    shfl.sync.bfly.b32 %r50, %r1, 16, 31, -1; mov.b32 %r50, {used};"""
    found = Findings()
    result = machine.align(np.zeros(32, np.uint32))
    text = machine.kernel(body + STORE, parameters=1)
    machine.launch(text, block=32, arrays=[result], findings=found)
    assert [one.kind for one in found.all()] == kinds


def test_votes_in_a_warp_that_is_not_full(machine):
    body = """setp.ge.u32 %p1, %r99, 3; vote.sync.ballot.b32 %r50, %p1, -1;
    vote.sync.all.pred %p2, %p1, -1; vote.sync.any.pred %p3, !%p1, -1; vote.sync.uni.pred %p4, %p1, -1;
    selp.b32 %r1, 1, 0, %p2; selp.b32 %r2, 2, 0, %p3; selp.b32 %r3, 4, 0, %p4;
    add.s32 %r1, %r1, %r2; add.s32 %r1, %r1, %r3; mad.lo.s32 %r50, %r1, 65536, %r50;"""
    got = outputs(machine, body, threads=40)
    first = 0xFFFFFFF8 + 2 * 65536 & 0xFFFFFFFF
    assert got.tolist() == [first] * 32 + [0xFF + 5 * 65536] * 8


def test_halves_of_a_warp_vote_match_and_reduce_among_themselves(machine):
    body = """and.b32 %r1, %r99, 16; setp.eq.b32 %p1, %r1, 0; selp.b32 %r2, 0x0000FFFF, 0xFFFF0000, %p1;
    setp.lt.u32 %p2, %r99, 20; vote.sync.ballot.b32 %r3, %p2, %r2; vote.sync.all.pred %p3, %p2, %r2;
    match.any.sync.b32 %r4, 7, %r2; redux.sync.add.u32 %r5, 1, %r2; elect.sync _|%p4, %r2;
    selp.b32 %r6, 1, 0, %p3; selp.b32 %r7, 2, 0, %p4; add.s32 %r6, %r6, %r7; popc.b32 %r3, %r3;
    popc.b32 %r4, %r4; mad.lo.s32 %r50, %r3, 100, %r6; mad.lo.s32 %r50, %r4, 10000, %r50;
    mad.lo.s32 %r50, %r5, 1000000, %r50;"""
    got = outputs(machine, body, threads=32)
    for thread in range(32):
        votes = 16 if thread < 16 else 4
        want = 16 * 1000000 + 16 * 10000 + votes * 100 + (thread < 16) + 2 * (thread in {0, 16})
        assert got[thread] == want


def test_warp_reductions(machine):
    body = """sub.s32 %r1, %r99, 10; redux.sync.add.s32 %r2, %r1, -1; redux.sync.min.s32 %r3, %r1, -1;
    redux.sync.max.u32 %r4, %r99, -1; redux.sync.xor.b32 %r5, %r99, -1;
    mad.lo.s32 %r50, %r3, 1000, %r2; mad.lo.s32 %r50, %r4, 100000, %r50; add.s32 %r50, %r50, %r5;"""
    got = outputs(machine, body)
    for warp in range(2):
        lanes = np.arange(32) + 32 * warp
        want = (
            (lanes - 10).sum()
            + (lanes - 10).min() * 1000
            + lanes.max() * 100000
            + np.bitwise_xor.reduce(lanes)
        )
        assert (got[lanes] == want).all()


def test_match_groups_lanes_by_value(machine):
    body = "rem.u32 %r1, %r99, 3; match.any.sync.b32 %r50, %r1, -1;"
    got = outputs(machine, body)
    for thread in range(64):
        group = [lane for lane in range(32) if (thread // 32 * 32 + lane) % 3 == thread % 3]
        assert got[thread] == sum(1 << lane for lane in group)


def test_active_mask_and_election_under_divergence(machine):
    body = """mov.b32 %r50, 0; and.b32 %r1, %r99, 7; setp.lt.u32 %p1, %r1, 5; @%p1 bra L0;
    activemask.b32 %r50; elect.sync %r3|%p2, 0xE0E0E0E0; selp.b32 %r2, 1, 0, %p2; add.s32 %r50, %r50, %r2;
L0: """
    got = outputs(machine, body)
    for thread in range(64):
        want = 0 if thread % 8 < 5 else 0xE0E0E0E0 + (thread % 32 == 5)
        assert got[thread] == want


def test_special_registers_say_where_a_thread_is(machine):
    result = machine.align(np.zeros((3 * 2 * 2, 4 * 6 * 2, 4), np.uint32))
    text = machine.kernel(
        """mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
    mad.lo.s32 %r4, %r2, 100, %r1; mad.lo.s32 %r4, %r3, 10000, %r4;
    mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ctaid.y; mov.u32 %r7, %ctaid.z;
    mad.lo.s32 %r8, %r6, 100, %r5; mad.lo.s32 %r8, %r7, 10000, %r8;
    mov.u32 %r9, %laneid; mov.u32 %r10, %warpid; mad.lo.s32 %r9, %r10, 100, %r9;
    mov.u32 %r11, %lanemask_lt; popc.b32 %r11, %r11;
    mad.lo.s32 %r12, %r7, 2, %r6; mad.lo.s32 %r12, %r12, 3, %r5;
    mad.lo.s32 %r13, %r3, 6, %r2; mad.lo.s32 %r13, %r13, 4, %r1; mad.lo.s32 %r13, %r12, 48, %r13;
    mad.wide.u32 %rd1, %r13, 16, %rd90; st.global.v4.b32 [%rd1], {%r4, %r8, %r9, %r11};""",
        parameters=1,
    )
    machine.launch(text, grid=(3, 2, 2), block=(4, 6, 2), arrays=[result])
    for cta in range(12):
        for thread in range(48):
            x, y, z = thread % 4, thread // 4 % 6, thread // 24
            bx, by, bz = cta % 3, cta // 3 % 2, cta // 6
            lane = thread % 32
            want = [x + 100 * y + 10000 * z, bx + 100 * by + 10000 * bz, thread // 32 * 100 + lane, lane]
            assert result[cta, thread].tolist() == want
