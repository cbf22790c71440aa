"""Loops that only repeat are counted without being run, others run; either way the counts are those of all turns."""

import numpy as np
import pytest

from cutegen_nb.simulator.ptx.faults import OutOfBounds

THREADS = 64
START = """
mov.u32 %r98, %ctaid.x; mad.lo.u32 %r97, %r98, 64, %r99; mul.wide.u32 %rd1, %r97, 4; add.u64 %rd1, %rd90, %rd1;
mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0; mov.u64 %rd2, %rd1;
"""
"""%rd1: address of the thread's own element in memory; %r1 to %r3: 0."""
SHARED = ".shared .align 16 .b8 buffer[4096]; .shared .align 8 .b64 phases[2];"

REPEATING = {
    "counter to a constant": "AGAIN: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 1000; @%p1 bra AGAIN;",
    "counter down to zero": """mov.b32 %r1, 1000;
        AGAIN: add.s32 %r1, %r1, -1; setp.ne.s32 %p1, %r1, 0; @%p1 bra AGAIN;""",
    "unsigned counter from a negative number": """mov.b32 %r1, -1000;
        AGAIN: add.s32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra AGAIN;""",
    "limit by CTA": """mad.lo.s32 %r4, %r98, 100, 500;
        AGAIN: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r4; @%p1 bra AGAIN;""",
    "loads at a stride": """AGAIN: ld.global.b32 %r5, [%rd2]; add.s32 %r6, %r6, %r5; add.s64 %rd2, %rd2, 1024;
        add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 900; @%p1 bra AGAIN;""",
    "loads of rows that are no whole sectors": """AGAIN: ld.global.b32 %r5, [%rd2]; add.s64 %rd2, %rd2, 1004;
        add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 900; @%p1 bra AGAIN;""",
    "a branch taken every fourth turn": """AGAIN: and.b32 %r4, %r1, 3; setp.ne.s32 %p2, %r4, 0; @%p2 bra ON;
        add.s32 %r3, %r3, 7; ON: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 1000; @%p1 bra AGAIN;""",
    "a branch taken every eighth turn": """AGAIN: and.b32 %r4, %r1, 7; setp.ne.s32 %p2, %r4, 0; @%p2 bra ON;
        add.s32 %r3, %r3, 7; ON: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 1000; @%p1 bra AGAIN;""",
    "a guarded load": """AGAIN: setp.lt.s32 %p2, %r1, 700; @%p2 ld.global.b32 %r5, [%rd2];
        add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 1000; @%p1 bra AGAIN;""",
    "a guard that is passed just before a look": """mov.b32 %r1, 2380;
        AGAIN: setp.lt.s32 %p2, %r1, {limit}; @%p2 ld.global.b32 %r5, [%rd90];
        sub.s32 %r1, %r1, 7; setp.gt.s32 %p1, %r1, 0; @%p1 bra AGAIN;""",
    "warps that pass a number one after the other": """shr.u32 %r4, %r99, 5; add.s32 %r1, %r4, 1183;
        AGAIN: setp.eq.s32 %p2, %r1, {limit}; @%p2 ld.global.b32 %r5, [%rd90];
        setp.eq.s32 %p2, %r1, 1151; @%p2 ld.global.b32 %r6, [%rd90];
        sub.s32 %r1, %r1, 1; setp.gt.s32 %p1, %r1, 0; @%p1 bra AGAIN;""",
    "loop in a loop": """OUTER: mov.b32 %r2, 0;
        INNER: add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, 100; @%p1 bra INNER;
        add.s32 %r1, %r1, 1; setp.lt.s32 %p2, %r1, 200; @%p2 bra OUTER;""",
    "half of the threads": """setp.lt.u32 %p3, %r99, 40; @!%p3 bra END;
        AGAIN: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 1000; @%p1 bra AGAIN; END: mov.b32 %r3, 1;""",
    "limits that differ by thread": """mad.lo.s32 %r4, %r99, 10, 3000;
        AGAIN: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r4; @%p1 bra AGAIN;""",
}  # fmt: skip
OTHERS = {
    "a way out that depends on data": """
        AGAIN: ld.global.b32 %r5, [%rd2]; add.s64 %rd2, %rd2, 4; add.s32 %r1, %r1, 1;
        setp.gt.s32 %p1, %r5, 0; @%p1 bra AGAIN;""",
    "an address that was loaded": """
        AGAIN: ld.global.b32 %r5, [%rd2]; mul.wide.s32 %rd3, %r5, 4; add.s64 %rd2, %rd90, %rd3;
        add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 300; @%p1 bra AGAIN;""",
    "a counter that doubles": """mov.b32 %r1, 1;
        AGAIN: shl.b32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 1000000000; @%p1 bra AGAIN;""",
    "a float that is compared": """mov.f32 %r1, 0f00000000;
        AGAIN: add.f32 %r1, %r1, 0f3F800000; setp.lt.f32 %p1, %r1, 0f43960000; @%p1 bra AGAIN;""",
    "an mbarrier": """mov.b32 %r20, phases; setp.eq.u32 %p3, %r99, 0; @%p3 mbarrier.init.shared.b64 [%r20], 64; bar.sync 0;
        AGAIN: mbarrier.arrive.shared.b64 %rd5, [%r20]; WAIT: mbarrier.test_wait.shared.b64 %p2, [%r20], %rd5;
        @!%p2 bra WAIT; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 300; @%p1 bra AGAIN;""",
    "arithmetic for the largest so far": """
        AGAIN: ld.global.b32 %r5, [%rd2]; add.s64 %rd2, %rd2, 1024; setp.le.s32 %p2, %r5, %r6; @%p2 bra ON;
        mov.b32 %r6, %r5; ON: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 900; @%p1 bra AGAIN;""",
    "data that decide about an address": """
        AGAIN: ld.global.b32 %r5, [%rd2]; setp.lt.s32 %p2, %r5, 150000; @%p2 bra ON; add.s64 %rd2, %rd2, 1024;
        ON: add.s64 %rd2, %rd2, 4; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 300; @%p1 bra AGAIN;""",
    "data that decide about a load": """
        AGAIN: ld.global.b32 %r5, [%rd2]; setp.lt.s32 %p2, %r5, 150000; @%p2 bra ON; ld.global.b32 %r6, [%rd1];
        ON: add.s64 %rd2, %rd2, 1024; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 900; @%p1 bra AGAIN;""",
    "few turns": "AGAIN: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 7; @%p1 bra AGAIN;",
}  # fmt: skip


STAGES = """mov.b32 %r20, buffer;
AGAIN: mad.lo.s32 %r4, %r2, 256, %r20; mad.lo.s32 %r4, %r99, 4, %r4; st.shared.b32 [%r4], %r1;
bar.sync 0; ld.shared.b32 %r5, [%r4];
add.s32 %r2, %r2, 1; setp.eq.s32 %p2, %r2, {stages}; selp.b32 %r2, 0, %r2, %p2;
add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 1000; @%p1 bra AGAIN;"""


COSTLY = (
    "a guard that is passed just before a look",
    "warps that pass a number one after the other",
    "data that decide about a load",
)
"""Loops run in ``make test-long``."""


def cases(loops):
    return [pytest.param(name, marks=pytest.mark.long if name in COSTLY else ()) for name in loops]


def chain():
    """Numbers of which each is positive but the last, and each a place in the same array."""
    values = np.random.default_rng(1).permutation(300_000).astype(np.int32) + 1
    values[values == 300_000] = 1
    values[500::500] = 0
    return values


def counted(take, machine, body):
    text = machine.kernel(START + body, parameters=1, before=SHARED)
    return take(text, [chain()], grid=3, block=THREADS)


def limits(loop):
    """Limits to try of a loop whose text leaves one open, so that it is met at every place of a period."""
    return range(1160, 1184) if "{limit}" in REPEATING[loop] else [0]


@pytest.mark.parametrize("loop", cases(REPEATING))
def test_a_loop_that_repeats_is_skipped_and_counted(machine, sampled, whole, loop):
    for limit in limits(loop):
        body = REPEATING[loop].replace("{limit}", str(limit))
        sample, oracle = (counted(take, machine, body) for take in (sampled, whole))
        assert sample.profile.counters == oracle.counters, limit
        assert sample.profile.lines == oracle.lines
        assert sample.skipped_fraction > 0.5


@pytest.mark.parametrize(
    "otherwise", ["", "bra.uni JOIN; OTHER: mul.lo.s32 %r6, %r5, 3; xor.b32 %r6, %r6, 5;"]
)
def test_arithmetic_that_data_decide_about_is_extrapolated(machine, sampled, whole, otherwise):
    """Half of the numbers take the branch; loads and turns are counted exactly all the same."""
    body = f"""AGAIN: ld.global.b32 %r5, [%rd2]; setp.lt.s32 %p2, %r5, 150000;
        @%p2 bra {"OTHER" if otherwise else "JOIN"}; add.s32 %r6, %r5, 7; {otherwise} JOIN:
        add.s64 %rd2, %rd2, 1024; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 900; @%p1 bra AGAIN;"""
    sample, oracle = (counted(take, machine, body) for take in (sampled, whole))
    found, expected = sample.profile.counters, oracle.counters
    assert sample.skipped_fraction > 0.5
    assert found.warp_instructions == pytest.approx(expected.warp_instructions, rel=0.01)
    assert found.thread_instructions == pytest.approx(expected.thread_instructions, rel=0.02)
    assert found.divergent_branches == pytest.approx(expected.divergent_branches, rel=0.1)
    assert found.gmem_load_sectors == expected.gmem_load_sectors
    assert found.branches == pytest.approx(expected.branches, rel=0.01)


@pytest.mark.every(test=3)
@pytest.mark.parametrize("stages", [2, 3, 4, 5, 6, 8, 9, 16])
def test_a_loop_over_stages_is_skipped_by_whole_rounds_of_them(machine, sampled, whole, stages):
    """Every 12 turns a stage number modulo 5 goes 0, 2, 4, which is no steady advance."""
    sample, oracle = (counted(take, machine, STAGES.format(stages=stages)) for take in (sampled, whole))
    assert sample.profile.counters == oracle.counters
    assert sample.skipped_fraction > 0.5


def test_addresses_from_loaded_numbers_that_rise_evenly_for_a_while_are_not_foretold(machine, sampled, whole):
    """Of 300 numbers the first 200 rise by one; they are the stride at which threads load, the others are 0."""
    numbers = np.zeros(100_000, np.int32)
    numbers[:200] = 100 + np.arange(200)
    body = """AGAIN: ld.global.b32 %r5, [%rd3]; mul.lo.s32 %r6, %r5, %r99; mul.wide.s32 %rd4, %r6, 4;
    add.s64 %rd4, %rd90, %rd4; ld.global.b32 %r7, [%rd4]; add.s64 %rd3, %rd3, 4;
    add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 300; @%p1 bra AGAIN;"""
    text = machine.kernel(f"mov.u64 %rd3, %rd90; mov.b32 %r1, 0; {body}", parameters=1)
    sample, oracle = (take(text, [numbers], grid=3, block=THREADS) for take in (sampled, whole))
    assert sample.profile.counters == oracle.counters


@pytest.mark.every(test=2)
@pytest.mark.parametrize("loop", cases(OTHERS))
def test_a_loop_that_depends_on_data_or_on_others_is_run(machine, sampled, whole, loop):
    sample, oracle = (counted(take, machine, OTHERS[loop]) for take in (sampled, whole))
    assert sample.skipped_fraction == 0
    assert sample.profile.counters == oracle.counters


def test_what_follows_a_skipped_loop_finds_the_registers_advanced(machine, sampled):
    """The address after the loop is that of the last turn: past the array it is a fault, within it none."""
    body = START + """AGAIN: add.s64 %rd2, %rd2, 4096; add.s32 %r1, %r1, 1;
        setp.lt.s32 %p1, %r1, {turns}; @%p1 bra AGAIN; st.global.b32 [%rd2], %r1;"""  # fmt: skip
    inside = sampled(machine.kernel(body.format(turns=290), parameters=1), [300_000], grid=1, block=THREADS)
    assert inside.skipped_fraction > 0.5
    with pytest.raises(OutOfBounds):
        sampled(machine.kernel(body.format(turns=293), parameters=1), [300_000], grid=1, block=THREADS)
