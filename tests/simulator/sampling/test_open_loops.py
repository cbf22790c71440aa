"""A batch of CTAs whose loops are long is cut, and its counts are those of all turns."""

import itertools
import math
import time
from types import SimpleNamespace

import pytest

from cutegen_nb.simulator.machine.program import program_of
from cutegen_nb.simulator.ptx.parser import parse
from cutegen_nb.simulator.sampling import loop_skipper
from cutegen_nb.simulator.sampling.loop_analysis import exit_comparison

WALK = """mov.u32 %r1, %ctaid.x; mov.b32 %r7, 0;
TILE: mul.lo.u32 %r2, %r1, %r1; rem.u32 %r2, %r2, 97; mov.b32 %r6, 0; add.u32 %r2, %r2, 3;
PART: mul.lo.u32 %r3, %r2, %r6; rem.u32 %r3, %r3, 101; mul.wide.u32 %rd1, %r3, 256; mul.wide.u32 %rd2, %r99, 4;
add.u64 %rd3, %rd90, %rd1; add.u64 %rd3, %rd3, %rd2; ld.global.b32 %r5, [%rd3]; add.s32 %r6, %r6, 1;
setp.lt.s32 %p1, %r6, 6; @%p1 bra PART;
st.global.b32 [%rd3], %r7; {};
add.s32 %r7, %r7, 1; add.s32 %r1, %r1, 12; setp.lt.s32 %p2, %r1, {}; @%p2 bra TILE;"""
"""CTA n walks over the tiles n, n + 12, …; of each it loads six parts at places that no step tells."""
WHOLE = "mov.b32 %r8, 0"
ROLES = """setp.lt.u32 %p3, %r99, 32; @%p3 bra OTHERS;
{walk} bra DONE;
OTHERS: mov.b32 %r10, 0; mul.wide.u32 %rd6, %r99, 128; add.u64 %rd5, %rd90, %rd6;
NEXT: ld.global.b32 %r11, [%rd5]; {meet}; add.s32 %r10, %r10, 1; mul.lo.u32 %r13, %r10, %r10; rem.u32 %r13, %r13, 31;
mul.wide.u32 %rd4, %r13, 256; add.u64 %rd5, %rd90, %rd4; add.u64 %rd5, %rd5, %rd6;
setp.ne.s32 %p4, %r10, 32; @%p4 bra NEXT; DONE:"""
"""The first warp of a CTA has a loop of its own that loads much, as the warp that copies has."""
MEET = "bar.sync 1, 64"


def roles(meet):
    """Both roles of a CTA, which `meet` in each turn; the other one walks over tiles of eight parts."""
    walk = WALK.format(meet, 12 * 32).replace("%r6, 6;", "%r6, 8;")
    return ROLES.format(walk=walk, meet=meet)


@pytest.fixture
def cut(monkeypatch, sampled):
    """A sample whose batches are cut after some turns, once their loops are known."""

    def take(text, sizes, *, turns=0, **settings):
        seconds = itertools.chain(itertools.repeat(0.0, turns), itertools.repeat(math.inf))
        monkeypatch.setattr(loop_skipper, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
        return sampled(text, sizes, stop_at=time.monotonic() + 1000, **settings)

    return take


def assert_near(sample, oracle, share):
    for name in ("warp_instructions", "thread_instructions", "gmem_load_sectors", "gmem_store_bytes"):
        expected = getattr(oracle.counters, name)
        assert getattr(sample.profile.counters, name) == pytest.approx(expected, rel=share), name


@pytest.mark.parametrize(
    ("body", "parts"),
    [(WALK.format(WHOLE, 12 * 32), 6), pytest.param(roles(MEET), 8, marks=pytest.mark.long)],
    ids=["one loop", "roles that meet"],
)
def test_the_counts_of_a_batch_that_was_cut_are_those_of_all_its_turns(machine, cut, whole, body, parts):
    text = machine.kernel(body, parameters=1)
    sample = cut(text, [64 * 104], grid=12, block=64, turns=16 * parts)
    oracle = whole(text, [64 * 104], grid=12, block=64)
    assert sample.skipped_fraction > 0.4
    assert sample.error_fraction == 0.05
    assert sample.profile.ctas_run == 12
    assert_near(sample, oracle, 0.15)
    assert sample.longest_warp_instructions == pytest.approx(32 * parts * 11, rel=0.6)


@pytest.mark.long
def test_roles_that_wait_for_nobody_are_not_cut(machine, cut, whole):
    """One of them may have run to its end before the other has begun."""
    text = machine.kernel(roles(WHOLE), parameters=1)
    sample, oracle = (take(text, [64 * 104], grid=12, block=64) for take in (cut, whole))
    assert sample.skipped_fraction == 0
    assert_near(sample, oracle, 1e-9)


def test_a_batch_runs_on_while_its_outer_loop_has_not_turned_often(machine, cut, whole):
    """Of seven tiles the first three tell little, so that all of them run."""
    text = machine.kernel(WALK.format(WHOLE, 12 * 7), parameters=1)
    sample, oracle = (take(text, [64 * 104], grid=12, block=64) for take in (cut, whole))
    assert sample.skipped_fraction == 0
    assert_near(sample, oracle, 1e-9)


@pytest.mark.long
def test_a_batch_is_not_cut_in_the_first_of_two_loops(machine, cut, whole):
    """What the second one will count is not known yet."""
    first = WALK.format(WHOLE, 12 * 32)
    second = first.replace("TILE", "TILE2").replace("PART", "PART2")
    text = machine.kernel(f"{first} {second}", parameters=1)
    sample, oracle = (take(text, [64 * 104], grid=12, block=64) for take in (cut, whole))
    assert_near(sample, oracle, 0.15)


@pytest.mark.long
def test_a_batch_is_not_cut_in_the_first_turn_of_an_outer_loop(machine, cut, whole):
    """The inner loop is known then, and how often the outer one begins it anew is not."""
    text = machine.kernel(WALK.format(WHOLE, 12 * 3).replace("%r6, 6;", "%r6, 60;"), parameters=1)
    sample, oracle = (take(text, [64 * 104], grid=12, block=64) for take in (cut, whole))
    assert sample.skipped_fraction == 0
    assert_near(sample, oracle, 1e-9)


@pytest.mark.long
def test_a_loop_that_no_single_comparison_ends_is_not_cut(machine, cut, whole):
    walk = WALK.format(WHOLE, 12 * 30)
    body = walk.replace("; @%p2 bra", "; setp.lt.s32 %p3, %r7, 900; and.pred %p2, %p2, %p3; @%p2 bra")
    text = machine.kernel(body, parameters=1)
    sample, oracle = (take(text, [64 * 104], grid=12, block=64) for take in (cut, whole))
    assert sample.skipped_fraction == 0
    assert_near(sample, oracle, 1e-9)


def test_the_comparison_that_ends_a_loop_is_that_of_its_branch(machine):
    module = parse(machine.kernel(WALK.format(WHOLE, 500), parameters=1))
    program = program_of(module, next(iter(module.kernels.values())))
    edges = [(one.target, at) for at, one in enumerate(program.segments) if 0 <= one.target <= at]
    found = {exit_comparison(program, *edge).constants[1] for edge in edges}
    assert found == {6, 500}
