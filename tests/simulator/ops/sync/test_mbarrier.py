"""mbarrier objects: phases, tokens, transactions, arrivals after asynchronous copies, and waits that never end."""

import numpy as np
import pytest

from cutegen_nb.simulator.ops.sync import mbarrier as mbarrier_ops
from cutegen_nb.simulator.ptx.faults import Deadlock

SHARED = ".shared .align 16 .b8 room[4096]; mov.b32 %r80, room;"
INIT = """setp.eq.u32 %p9, %r99, 0; @!%p9 bra READY; mbarrier.init.shared.b64 [%r80], {count};
READY: bar.sync 0;"""
STORE = "mad.wide.u32 %rd1, %r99, 4, %rd90; st.global.b32 [%rd1], {};"


def run(machine, body, *, block=64, grid=1, count=None):
    """Run a body; gives what each thread stored with STORE."""
    init = "" if count is None else INIT.format(count=count)
    result = machine.align(np.zeros((grid, block), np.uint32))
    head = f"mov.u32 %r90, %ctaid.x; mad.wide.u32 %rd90, %r90, {4 * block}, %rd90;"
    text = machine.kernel(SHARED + head + init + body, parameters=1)
    machine.launch(text, block=block, grid=grid, arrays=[result])
    return result


def spin(parity="0", name="mbarrier.try_wait.parity.shared::cta.b64", place="[%r80]", label="WAIT"):
    return f"{label}: {name} %p1, {place}, {parity}; @!%p1 bra {label};"


def test_a_phase_ends_when_all_expected_arrivals_came(machine):
    """One warp works longer before it arrives; the other sees what it wrote."""
    body = f"""setp.ge.u32 %p2, %r99, 32; @!%p2 bra FIRST;
    mov.b32 %r1, 0;
    LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 300; @%p3 bra LOOP;
    shl.b32 %r2, %r99, 2; st.shared.b32 [%r2+512], %r1;
    mbarrier.arrive.shared.b64 %rd5, [%r80]; bra END;
    FIRST: mbarrier.arrive.shared.b64 %rd5, [%r80]; {spin()}
    shl.b32 %r2, %r99, 2; ld.shared.b32 %r1, [%r2+640];
    END: {STORE.format("%r1")}"""
    assert (run(machine, body, count=64, grid=3) == 300).all()


@pytest.mark.parametrize("name", ["mbarrier.test_wait.shared.b64", "mbarrier.try_wait.shared.b64"])
def test_a_token_knows_the_phase_it_was_taken_in(machine, name):
    """All see their phase end; the next one lacks the arrivals of a warp, which only looks."""
    body = f"""mbarrier.arrive.shared.b64 %rd5, [%r80]; {spin("%rd5", name)} mov.b64 %rd6, %rd5; bar.sync 0;
    setp.ge.u32 %p4, %r99, 32; @%p4 bra LOOK;
    mbarrier.arrive.release.cta.shared::cta.b64 %rd6, [%r80];
    LOOK: {name} %p2, [%r80], %rd5; {name} %p3, [%r80], %rd6;
    selp.u32 %r1, 1, 0, %p2; selp.u32 %r2, 2, 0, %p3; add.u32 %r1, %r1, %r2; {STORE.format("%r1")}"""
    assert run(machine, body, count=64)[0].tolist() == [1] * 32 + [3] * 32


def test_generic_addresses_and_a_time_hint_are_known(machine):
    generic = "cvt.u64.u32 %rd7, %r80; cvta.shared.u64 %rd7, %rd7;"
    body = f"""{generic} mbarrier.arrive.b64 _, [%rd7];
    WAIT: mbarrier.try_wait.parity.acquire.cta.b64 %p1, [%rd7], 0, 1000; @!%p1 bra WAIT;
    {STORE.format("7")}""".replace("st.global.b32 [%rd1], 7", "mov.b32 %r1, 7; st.global.b32 [%rd1], %r1")
    assert (run(machine, body, count=64) == 7).all()


def test_one_instruction_may_end_several_phases(machine):
    """64 arrivals at a barrier of 16: four phases, and tokens of both parities."""
    body = f"""mbarrier.arrive.shared.b64 %rd5, [%r80]; mbarrier.pending_count.b64 %r1, %rd5;
    bar.sync 0; mbarrier.test_wait.parity.shared.b64 %p1, [%r80], 1; selp.u32 %r2, 100, 0, %p1;
    add.u32 %r1, %r1, %r2; {STORE.format("%r1")}"""
    result = run(machine, body, count=16)
    assert (result[0] - 100 == 16 - np.arange(64) % 16).all()


def test_arrivals_with_a_count_and_without_completion(machine):
    body = f"""setp.ne.u32 %p2, %r99, 0; @%p2 bra END;
    mbarrier.arrive.noComplete.shared.b64 %rd5, [%r80], 5; mbarrier.pending_count.b64 %r1, %rd5;
    mbarrier.arrive.shared.b64 %rd6, [%r80], 3; mbarrier.pending_count.b64 %r2, %rd6;
    mbarrier.test_wait.shared.b64 %p1, [%r80], %rd5; selp.u32 %r3, 1, 0, %p1;
    mad.lo.u32 %r1, %r1, 100, %r2; mad.lo.u32 %r1, %r1, 10, %r3; {STORE.format("%r1")} END:"""
    assert run(machine, body, count=8)[0, 0] == (8 * 100 + 3) * 10 + 1


def test_threads_that_drop_out_are_not_waited_for_again(machine):
    body = f"""setp.lt.u32 %p2, %r99, 32; @!%p2 bra STAY;
    mbarrier.arrive_drop.shared.b64 %rd5, [%r80]; bra END;
    STAY: mbarrier.arrive.shared.b64 %rd5, [%r80]; {spin()}
    mbarrier.arrive.shared.b64 %rd6, [%r80]; mbarrier.pending_count.b64 %r1, %rd6; {spin("1", label="AGAIN")}
    {STORE.format("%r1")} END:"""
    result = run(machine, body, count=64)
    assert result[0, 32:].tolist() == list(range(32, 0, -1))


def test_a_phase_waits_for_its_bytes_too(machine):
    body = f"""setp.ne.u32 %p2, %r99, 0; @%p2 bra WAITING;
    mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r80], 256;
    mbarrier.test_wait.parity.shared.b64 %p3, [%r80], 0;
    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r80], 64; mbarrier.complete_tx.shared::cta.b64 [%r80], 300;
    mbarrier.test_wait.parity.shared.b64 %p4, [%r80], 0; mbarrier.complete_tx.shared::cta.b64 [%r80], 20;
    mbarrier.test_wait.parity.shared.b64 %p5, [%r80], 0;
    selp.u32 %r1, 1, 0, %p3; selp.u32 %r2, 2, 0, %p4; selp.u32 %r3, 4, 0, %p5;
    add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; {STORE.format("%r1")} bra END;
    WAITING: {spin()} mov.b32 %r1, 9; {STORE.format("%r1")}
    END:"""
    assert run(machine, body, count=1)[0].tolist() == [4] + [9] * 63


def copy_text(machine, noinc, count):
    return machine.kernel(
        f"""{SHARED} {INIT.format(count=count)}
        shl.b32 %r1, %r99, 4; mad.wide.u32 %rd1, %r99, 16, %rd90; mad.wide.u32 %rd2, %r99, 16, %rd91;
        cp.async.cg.shared.global [%r1+64], [%rd1], 16;
        cp.async.mbarrier.arrive{noinc}.shared.b64 [%r80];
        {"mbarrier.arrive.shared.b64 %rd5, [%r80];" if not noinc else ""}
        {spin()}
        xor.b32 %r1, %r1, 512; ld.shared.v4.b32 {{%r2, %r3, %r4, %r5}}, [%r1+64];
        st.global.v4.b32 [%rd2], {{%r2, %r3, %r4, %r5}};""",
        parameters=2,
    )


@pytest.mark.parametrize("noinc", ["", ".noinc"])
def test_an_arrival_after_copies_brings_them(machine, noinc):
    source = machine.align(np.arange(256, dtype=np.uint32))
    result = machine.align(np.zeros(256, np.uint32))
    machine.launch(copy_text(machine, noinc, 64), block=64, arrays=[source, result])
    assert np.array_equal(result.reshape(64, 4), source.reshape(64, 4)[np.arange(64) ^ 32])


def test_copies_are_not_there_before_somebody_waits(machine):
    source = machine.align(np.arange(256, dtype=np.uint32))
    result = machine.align(np.zeros(256, np.uint32))
    text = copy_text(machine, ".noinc", 64).replace(spin(), "")
    machine.launch(text, block=64, arrays=[source, result])
    assert not np.array_equal(result.reshape(64, 4), source.reshape(64, 4)[np.arange(64) ^ 32])


def ring_text(machine, tiles, stages):
    """A producer warp fills a ring of stages that a consumer warp empties, as pipelines of Hopper do."""
    return machine.kernel(
        f"""{SHARED} setp.ne.u32 %p9, %r99, 0; @%p9 bra READY; mov.b32 %r1, 0; mov.b32 %r2, 0;
        INIT: add.u32 %r3, %r80, %r2; mbarrier.init.shared.b64 [%r3], 32; mbarrier.init.shared.b64 [%r3+64], 32;
        add.u32 %r2, %r2, 8; add.u32 %r1, %r1, 1; setp.lt.u32 %p8, %r1, {stages}; @%p8 bra INIT;
        READY: bar.sync 0;
        and.b32 %r10, %r99, 31; shl.b32 %r10, %r10, 2;
        mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 1; mov.b32 %r14, 0; mov.b32 %r20, 0;
        setp.lt.u32 %p7, %r99, 32; @!%p7 bra CONSUME;
        PRODUCE: shl.b32 %r15, %r12, 3; add.u32 %r15, %r15, %r80;
        {spin("%r13", place="[%r15+64]", label="EMPTY")}
        shl.b32 %r16, %r12, 7; add.u32 %r16, %r16, %r10; mul.lo.u32 %r17, %r11, 3; add.u32 %r17, %r17, %r99;
        st.shared.b32 [%r16+256], %r17; mbarrier.arrive.shared.b64 _, [%r15];
        add.u32 %r12, %r12, 1; setp.eq.u32 %p2, %r12, {stages}; selp.b32 %r12, 0, %r12, %p2;
        @%p2 xor.b32 %r13, %r13, 1;
        add.u32 %r11, %r11, 1; setp.lt.u32 %p3, %r11, {tiles}; @%p3 bra PRODUCE; bra END;
        CONSUME: shl.b32 %r15, %r12, 3; add.u32 %r15, %r15, %r80;
        {spin("%r14", place="[%r15]", label="FULL")}
        shl.b32 %r16, %r12, 7; add.u32 %r16, %r16, %r10; ld.shared.b32 %r17, [%r16+256];
        add.u32 %r20, %r20, %r17; mbarrier.arrive.shared.b64 _, [%r15+64];
        add.u32 %r12, %r12, 1; setp.eq.u32 %p2, %r12, {stages}; selp.b32 %r12, 0, %r12, %p2;
        @%p2 xor.b32 %r14, %r14, 1;
        add.u32 %r11, %r11, 1; setp.lt.u32 %p3, %r11, {tiles}; @%p3 bra CONSUME;
        END: mov.u32 %r90, %ctaid.x; mad.wide.u32 %rd90, %r90, 256, %rd90; {STORE.format("%r20")}""",
        parameters=1,
    )


@pytest.mark.parametrize("stages", [1, 3])
def test_a_producer_and_a_consumer_pass_a_ring_of_tiles(machine, stages):
    tiles = 20
    result = machine.align(np.zeros((2, 64), np.uint32))
    profile = machine.launch(ring_text(machine, tiles, stages), block=64, grid=2, arrays=[result])
    want = 3 * tiles * (tiles - 1) // 2 + tiles * np.arange(32)
    assert (result[:, 32:] == want).all()
    assert profile.counters.warp_instructions < 2 * 2 * tiles * 60  # waits did not spin for ever


# -- faults --------------------------------------------------------------------------------------------------
def test_a_wait_that_nobody_ends_is_a_deadlock_by_name(machine, monkeypatch):
    monkeypatch.setattr(mbarrier_ops, "TRIES", 50)
    body = f"""setp.lt.u32 %p2, %r99, 32; @%p2 bra END; mbarrier.arrive.shared.b64 _, [%r80]; {spin()} END: bar.sync 0;"""
    with pytest.raises(Deadlock, match="32 threads of warps 1 wait at mbarrier") as caught:
        run(machine, body, count=64)
    assert "byte 0 of shared memory" in str(caught.value)
    assert "lacks 32 of 64 arrivals" in str(caught.value)


def test_all_threads_of_a_batch_may_be_stuck(machine, monkeypatch):
    monkeypatch.setattr(mbarrier_ops, "TRIES", 50)
    with pytest.raises(Deadlock, match="lacks 1 of 1 arrivals and 128 bytes"):
        run(machine, f"mbarrier.expect_tx.shared.b64 [%r80], 2; {spin()}", count=1)


def test_a_wait_that_gives_up_goes_on(machine):
    body = f"""mov.b32 %r1, 0;
    WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r80], 0; add.u32 %r1, %r1, 1;
    setp.lt.and.u32 %p2, %r1, 20, !%p1; @%p2 bra WAIT; {STORE.format("%r1")}"""
    assert (run(machine, body, count=64) == 20).all()
