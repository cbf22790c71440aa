"""Divergence, loops, barriers, calls: where threads go and who waits for whom."""

import signal
import threading

import numpy as np
import pytest

from cutegen_nb.simulator.ptx.faults import Deadlock, Trapped

STORE = "mad.wide.u32 %rd80, %r98, 4, %rd90; st.global.b32 [%rd80], %r50;"
INDEX = "mov.u32 %r97, %ctaid.x; mov.u32 %r96, %ntid.x; mad.lo.s32 %r98, %r97, %r96, %r99;"


def outputs(machine, body, *, threads=64, ctas=1, before=""):
    result = machine.align(np.zeros(threads * ctas, np.uint32))
    text = machine.kernel(INDEX + body + STORE, parameters=1, before=before)
    profile = machine.launch(text, block=threads, grid=ctas, arrays=[result])
    return result.reshape(ctas, threads).astype(np.int64), profile


def test_each_thread_leaves_a_loop_on_its_own_and_keeps_its_value(machine):
    body = """
    mov.b32 %r50, 0;
    mov.b32 %r51, 0;
L0: setp.ge.u32 %p1, %r51, %r99;
    @%p1 bra L1;
    add.s32 %r50, %r50, %r51;
    add.s32 %r51, %r51, 1;
    bra.uni L0;
L1: """
    got, profile = outputs(machine, body, threads=70)
    assert (got[0] == [t * (t - 1) // 2 for t in range(70)]).all()
    assert profile.counters.divergent_branches > 0


def test_both_sides_of_a_branch_meet_again(machine):
    body = """
    and.b32 %r51, %r99, 1;
    setp.eq.b32 %p1, %r51, 0;
    mov.b32 %r50, 7;
    @%p1 bra L0;
    mul.lo.s32 %r50, %r99, 3;
    bra.uni L1;
L0: add.s32 %r50, %r99, 100;
L1: vote.sync.ballot.b32 %r52, %p1, -1;
    add.s32 %r50, %r50, %r52;
"""
    got, _ = outputs(machine, body)
    want = [(t + 100 if t % 2 == 0 else 3 * t) + 0x55555555 for t in range(64)]
    assert (got[0] == want).all()


def test_a_guard_that_agrees_everywhere_costs_no_divergence(machine):
    body = "setp.lt.u32 %p1, %r99, 1000; mov.b32 %r50, 1; @!%p1 bra L0; mov.b32 %r50, 2;\nL0: "
    got, profile = outputs(machine, body)
    assert (got == 2).all()
    assert (profile.counters.branches, profile.counters.divergent_branches) == (2, 0)


def test_ctas_of_one_batch_diverge_from_each_other(machine):
    body = """
    mov.b32 %r50, 0;
    mov.b32 %r51, 0;
L0: setp.ge.u32 %p1, %r51, %r97;
    @%p1 bra L1;
    add.s32 %r51, %r51, 1;
    add.s32 %r50, %r50, 2;
    bra.uni L0;
L1: """
    got, profile = outputs(machine, body, ctas=5)
    assert (got == 2 * np.arange(5)[:, None]).all()
    assert profile.counters.divergent_branches == 0


def test_indexed_branch_sends_each_thread_to_its_target(machine):
    body = """
    and.b32 %r51, %r99, 3;
    mov.b32 %r50, 0;
    T0: .branchtargets A0, A1, A2, A3;
    brx.idx %r51, T0;
A0: add.s32 %r50, %r50, 1;
A1: add.s32 %r50, %r50, 10;
A2: add.s32 %r50, %r50, 100;
A3: add.s32 %r50, %r50, 1000;
"""
    got, _ = outputs(machine, body)
    assert (got[0].reshape(-1, 4) == [1111, 1110, 1100, 1000]).all()


def test_function_calls_are_executed_with_their_own_registers(machine):
    before = """
.func (.param .b32 out) twice_plus(.param .b32 first, .param .b64 second)
{
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;
    ld.param.b32 %r1, [first];
    ld.param.b64 %rd1, [second];
    cvt.u32.u64 %r2, %rd1;
    setp.lt.u32 %p1, %r1, 10;
    @%p1 bra SMALL;
    mad.lo.s32 %r3, %r1, 2, %r2;
    st.param.b32 [out], %r3;
    ret;
SMALL:
    st.param.b32 [out], %r2;
    ret;
}"""
    body = """
    cvt.u64.u32 %rd1, %r99;
    { .param .b32 a; .param .b64 b; .param .b32 r;
      st.param.b32 [a], %r99;
      st.param.b64 [b], 5;
      call.uni (r), twice_plus, (a, b);
      ld.param.b32 %r50, [r];
    }
    { .param .b32 a; .param .b64 b; .param .b32 r;
      st.param.b32 [a], %r50;
      st.param.b64 [b], %rd1;
      call.uni (r), twice_plus, (a, b);
      ld.param.b32 %r50, [r];
    }
"""

    def twice_plus(first, second):
        return second if first < 10 else 2 * first + second

    got, _ = outputs(machine, body, before=before)
    assert (got[0] == [twice_plus(twice_plus(t, 5), t) for t in range(64)]).all()


def test_a_spin_lock_ends_though_the_loop_comes_first(machine):
    body = """
    mov.b32 %r50, 1;
    setp.ne.b32 %p5, %r99, 63;
    mov.b32 %r60, 0;
    @%p5 bra WAIT;
    bra.uni LATE;
WAIT:
    ld.volatile.shared.b32 %r61, [flag];
    setp.eq.b32 %p6, %r61, 0;
    @%p6 bra WAIT;
    bra.uni DONE;
LATE:
    st.volatile.shared.b32 [flag], 1;
DONE: """
    got, _ = outputs(machine, body, before=".shared .align 4 .b32 flag;")
    assert (got == 1).all()


@pytest.mark.long
def test_a_lock_that_every_warp_wants_in_turn_is_had_by_all_within_a_few_turns_each(machine):
    body = """
    and.b32 %r60, %r99, 31;
    setp.ne.b32 %p5, %r60, 0;
    @%p5 bra DONE;
WAIT:
    atom.global.cas.b32 %r61, [%rd91], 0, 1;
    setp.ne.b32 %p6, %r61, 0;
    @%p6 bra WAIT;
    ld.volatile.global.b32 %r62, [%rd91+4];
    setp.eq.b32 %p7, %r62, -1;
    @%p7 bra SKIP;
    add.s32 %r62, %r62, 1;
SKIP:
    st.volatile.global.b32 [%rd91+4], %r62;
    atom.global.exch.b32 %r63, [%rd91], 0;
DONE: mov.b32 %r50, 7;
    """
    result, lock = machine.align(np.zeros(1024, np.uint32)), machine.align(np.zeros(2, np.uint32))
    text = machine.kernel(INDEX + body + STORE, parameters=2)
    profile = machine.launch(text, block=256, grid=4, arrays=[result, lock])
    assert lock.tolist() == [0, 32]
    assert (result == 7).all()
    assert profile.counters.warp_instructions < 300_000


REDUCE = """
    mov.b32 %r60, buffer;
    mad.lo.s32 %r61, %r99, 4, %r60;
    st.shared.b32 [%r61], %r99;
    bar.sync 0;
    mov.b32 %r62, 32;
L0: setp.ge.u32 %p1, %r99, %r62;
    @%p1 bra L1;
    shl.b32 %r63, %r62, 2;
    add.s32 %r64, %r61, %r63;
    ld.shared.b32 %r65, [%r61];
    ld.shared.b32 %r66, [%r64];
    add.s32 %r65, %r65, %r66;
    st.shared.b32 [%r61], %r65;
L1: bar.sync 0;
    shr.u32 %r62, %r62, 1;
    setp.ne.b32 %p2, %r62, 0;
    @%p2 bra L0;
    ld.shared.b32 %r50, [%r60];
"""


def test_tree_reduction_through_barriers(machine):
    got, profile = outputs(machine, REDUCE, ctas=3, before=".shared .align 4 .b8 buffer[256];")
    assert (got == 63 * 64 // 2).all()
    assert profile.counters.barriers == 3 * 2 * 7
    assert profile.static_smem_bytes == 256


def test_threads_that_have_exited_are_not_waited_for(machine):
    body = "mov.b32 %r50, 3; setp.ge.u32 %p1, %r99, 40; @%p1 exit; bar.sync 0; "
    got, _ = outputs(machine, body)
    assert (got[0] == [3] * 40 + [0] * 24).all()


def test_a_shuffle_that_half_a_warp_never_reaches_is_a_deadlock(machine):
    body = """
    mov.b32 %r50, 0;
    setp.ge.u32 %p1, %r99, 16;
    @%p1 bra L0;
    shfl.sync.bfly.b32 %r50, %r99, 1, 31, -1;
    bra.uni L1;
L0: bar.sync 0;
L1: """
    with pytest.raises(Deadlock, match=r"shfl\.sync") as caught:
        outputs(machine, body)
    assert "wait at shfl.sync.bfly.b32 for the rest of their warp" in str(caught.value)
    assert "shfl.sync.bfly.b32 waits for every thread that its mask names: move it out" in str(caught.value)
    # The DSL's warp_idx() shuffles where nobody sees it.
    with pytest.raises(Deadlock, match=r"cute\.arch\.warp_idx\(\) holds one") as caught:
        outputs(machine, body.replace("bfly", "idx"))


def test_an_interrupted_launch_says_where_it_was(machine):
    body = """
    .loc 1 55 1
    setp.ge.u32 %p1, %r99, 16;
LOOP: ld.global.b32 %r50, [%rd90];
    @%p1 bra LOOP;
    bra.uni LOOP;"""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(
            KeyboardInterrupt, match=r"in a kernel: thread \(\d+, 0, 0\) of CTA .* candidate.py:55"
        ):
            outputs(machine, body)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


def test_lanes_wait_for_their_warp_at_a_shuffle_inside_a_loop(machine):
    # Even lanes jump back to the shuffle at once; odd lanes have more to do first.
    body = """
    mov.b32 %r50, 0;
    mov.b32 %r51, 0;
    and.b32 %r52, %r99, 1;
    setp.eq.b32 %p1, %r52, 0;
L0: shfl.sync.bfly.b32 %r53, %r51, 1, 31, -1;
    add.s32 %r50, %r50, %r53;
    add.s32 %r51, %r51, 1;
    setp.eq.b32 %p2, %r51, 4;
    @%p2 bra L2;
    @%p1 bra L0;
    add.s32 %r54, %r51, 0;
    bra.uni L0;
L2: """
    got, _ = outputs(machine, body)
    assert (got == 0 + 1 + 2 + 3).all()


def test_trap_names_the_thread(machine):
    body = "mov.b32 %r50, 0; setp.eq.b32 %p1, %r99, 37; @!%p1 bra L0; trap;\nL0: "
    with pytest.raises(Trapped, match=r"\(37, 0, 0\)") as caught:
        outputs(machine, body)
    assert caught.value.finding.thread == (37, 0, 0)


def test_clocks_grow(machine):
    body = "mov.u32 %r1, %clock; add.s32 %r2, %r1, 1;\nL0: mov.u32 %r3, %clock; setp.le.u32 %p1, %r3, %r1; @%p1 bra L0;"
    got, _ = outputs(machine, body + "mov.b32 %r50, 8;")
    assert (got == 8).all()


@pytest.mark.long
@pytest.mark.parametrize("barrier", ["bar.sync 0;", "bar.sync 1, 64;"])
def test_a_cta_passes_its_barriers_while_another_spins_for_it(machine, barrier):
    """Each CTA waits by its thread 0 until the CTA before has passed the turn on."""
    flags = machine.align(np.zeros(2, np.uint32))
    body = f"""
    setp.ne.b32 %p1, %r99, 0;
    @%p1 bra MEET;
WAIT:
    ld.acquire.gpu.global.b32 %r60, [%rd90];
    setp.ne.b32 %p2, %r60, %r97;
    @%p2 bra WAIT;
MEET:
    {barrier}
    @%p1 bra LATER;
    ld.global.b32 %r61, [%rd90+4];
    shl.b32 %r61, %r61, 1;
    add.u32 %r61, %r61, %r97;
    st.global.b32 [%rd90+4], %r61;
LATER:
    {barrier}
    @%p1 bra DONE;
    add.u32 %r62, %r97, 1;
    st.release.gpu.global.b32 [%rd90], %r62;
DONE: """
    machine.launch(machine.kernel(INDEX + body, parameters=1), grid=5, block=64, arrays=[flags])
    assert list(flags) == [5, (((0 * 2 + 1) * 2 + 2) * 2 + 3) * 2 + 4]
