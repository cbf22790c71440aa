"""Each check finds exactly its fault: kernels with one fault, their twins one token away, honest look-alikes."""

import itertools
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cutegen_nb.simulator.checkers.findings import Findings
from cutegen_nb.simulator.machine import schedule
from cutegen_nb.simulator.ptx.faults import BadLaunch, Deadlock, OutOfBounds, OutOfTime

SOURCE = Path(__file__).parents[1] / "programs" / "faulty_kernels.py"
FAULTS = {
    "barrier_missing": ("race", "y[bidx * THREADS + tidx] = shared[THREADS - 1 - tidx]"),
    "second_barrier_missing": ("race", "shared[tidx] = x[bidx * THREADS + tidx] * cutlass"),
    "everybody_writes": ("race", "shared[0] = cutlass.Float32(tidx)"),
    "counters_not_ready": ("race", "cute.arch.atomic_add"),
    "counters_read_early": ("race", "y[bidx * THREADS + tidx] = shared[tidx]"),
    "wrong_named_barrier": ("race", "y[bidx * THREADS + tidx] = shared[tidx - 64]"),
    "half_written": ("uninitialised-read", "y[bidx * THREADS + tidx] = cutlass.max(shared"),
    "register_tile_half_written": ("uninitialised-read", "y[bidx * THREADS + tidx] = cutlass.max(tile"),
    "register_sum_not_begun": ("uninitialised-read", "tile[0] = tile[0] + x[bidx"),
    "output_accumulated": ("uninitialised-read", "y[bidx * THREADS + tidx] = y[bidx"),
    "copy_not_waited_for": ("async-hazard", "y[bidx * THREADS + tidx] = shared[THREADS - 1 - tidx]"),
    "copy_overwritten": ("async-hazard", "shared[tidx] = cutlass.Float32(3.0)"),
    "copy_waited_for_by_one": ("race", "y[bidx * THREADS + tidx] = shared[THREADS - 1 - tidx]"),
    "barrier_in_a_branch": ("divergent-barrier", "cute.arch.sync_threads()"),
    "barrier_for_too_many": ("deadlock", "cute.arch.barrier(barrier_id=1, number_of_threads=128)  # half"),
    "ctas_write_over_one_another": ("cta-order", "y[tidx] = value"),
    "cta_reads_its_neighbour": ("cta-order", "value = y[(bidx + 1)"),
    "past_the_end": ("out-of-bounds", "y[bidx * THREADS + tidx] = x[bidx * 128"),
    "past_shared_memory": ("out-of-bounds", "y[bidx * THREADS + tidx] = shared[(tidx"),
    "too_much_shared_memory": ("launch-refused", ""),
}
HONEST = (
    "tail_masked_at_the_store", "one_value_by_all", "warp_owns_its_slice", "producer_and_consumer", "in_place",
    "two_stages",
)  # fmt: skip


def line_in(kernel, beginning):
    lines = SOURCE.read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"def {kernel}_kernel"))
    return next(
        number + 1 for number in range(start, len(lines)) if lines[number].strip().startswith(beginning)
    )


@pytest.fixture(scope="module")
def found(simulator_on, tmp_path_factory):
    return simulator_on("sm_80").run("faulty_kernels", tmp_path_factory.mktemp("twins"))


@pytest.mark.parametrize("kernel", FAULTS)
def test_a_kernel_with_one_fault_has_exactly_that_finding_at_its_line(found, kernel):
    kind, beginning = FAULTS[kernel]
    result = found[kernel]["faulty"]
    (finding,) = result["findings"]
    assert finding["kind"] == kind
    if kind == "launch-refused":
        assert "240,000 bytes of shared memory" in finding["message"]
        assert "a CTA on sm_80 has 166,912 at most" in finding["message"]
        assert result["error"]
        return
    assert finding["line"] == line_in(kernel, beginning)
    assert finding["severity"] == ("flag" if kind == "divergent-barrier" else "decides")
    assert (finding["cta"] is None) == (kernel == "register_sum_not_begun")  # every thread's, if one's
    assert "from faulty_kernels.py:" in finding["message"]


@pytest.mark.parametrize("kernel", FAULTS)
def test_its_twin_one_token_away_is_clean(found, kernel):
    assert found[kernel]["clean"] == {"error": "", "findings": []}


@pytest.mark.parametrize("kernel", HONEST)
def test_an_honest_kernel_that_looks_alike_is_not_accused(found, kernel):
    assert found[kernel]["clean"] == {"error": "", "findings": []}


def test_a_race_names_both_threads_and_both_lines(found):
    (finding,) = found["barrier_missing"]["faulty"]["findings"]
    line = line_in("barrier_missing", "shared[tidx] = x")
    assert (
        f"Thread (127, 0, 0) of CTA (0, 0, 0) writes byte 508 of shared memory (from faulty_kernels.py:{line})"
        in (finding["message"])
    )
    assert "thread (0, 0, 0) reads it" in finding["message"]


def test_a_copy_under_way_names_the_line_that_issued_it(found):
    (finding,) = found["copy_not_waited_for"]["faulty"]["findings"]
    assert f"cp.async issued from faulty_kernels.py:{line_of('cute.copy(atom')}" in finding["message"]


def line_of(beginning):
    lines = SOURCE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(beginning))


# -- the machine itself, on PTX ------------------------------------------------------------------------------
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


def test_an_unwritten_word_that_decides_nothing_is_let_off(machine):
    body = f"ld.shared.b32 %r51, [%r21]; setp.eq.u32 %p1, %r99, 1000; selp.b32 %r50, %r51, 6, %p1; {STORE}"
    found, _, result = findings(machine, body)
    assert found == []
    assert (result == 6).all()
    assert findings(machine, body.replace("1000", "10"))[0] == [("uninitialised-read", "decides")]


def test_barriers_of_a_cta_in_two_places_are_shown(machine):
    body = f"""
    setp.lt.u32 %p1, %r99, 32;
    @%p1 bra LEFT;
    .loc 1 51 5
    bar.sync 0;
    bra.uni DONE;
    .loc 1 52 5
LEFT: bar.sync 0;
DONE: mov.b32 %r50, 1; {STORE}"""
    found, every, _ = findings(machine, body)
    assert found == [("divergent-barrier", "flag")]
    assert "candidate.py:51" in every[0].message
    assert "candidate.py:52" in every[0].message
    assert findings(machine, body.replace("bar.sync 0", "bar.sync 1, 64"))[0] == []


def test_a_deadlock_says_where_everybody_is(machine):
    body = f"""
    setp.lt.u32 %p1, %r99, 32;
    .loc 1 61 5
    @%p1 bra LEFT;
    bar.sync 2;
LEFT: mov.b32 %r50, 1; {STORE}
    bar.sync 3;"""
    with pytest.raises(Deadlock) as caught:
        findings(machine, body)
    for part in (
        "32 threads of warp 1 wait at bar.sync (barrier 2)",
        "32 threads of warp 0 wait",
        "(barrier 3)",
    ):
        assert part in str(caught.value)


def test_a_wait_for_a_cta_that_has_not_started_says_so(machine):
    result = machine.align(np.zeros(1024, np.uint32))
    body = """
    red.global.add.u32 [%rd90], 1;
WAIT: ld.volatile.global.b32 %r40, [%rd90]; setp.lt.u32 %p1, %r40, 131072; @%p1 bra WAIT;"""
    text = machine.kernel(INDEX + body, parameters=1)
    with pytest.raises(OutOfTime, match=r"96 CTAs of the grid have not started.*cooperative launch"):
        machine.launch(text, block=1024, grid=128, arrays=[result], stop_at=time.monotonic() + 0.5)
    small = text.replace("131072", "65536")
    result[0] = 0
    machine.launch(
        small, block=1024, grid=64, arrays=[result], cooperative=True, stop_at=time.monotonic() + 20
    )
    assert result[0] == 65536


def test_a_launch_of_which_a_part_has_ended_is_said_to_be_probably_too_large(machine, monkeypatch):
    # A clock that counts its readings, one a segment: the first batch needs few of them on any machine.
    monkeypatch.setattr(schedule, "time", SimpleNamespace(monotonic=itertools.count().__next__))
    body = """
    mov.u32 %r40, %ctaid.x;
WAIT: setp.ge.u32 %p1, %r40, 32; @%p1 bra WAIT;"""
    with pytest.raises(OutOfTime, match=r"32 of 128 CTAs had ended, so the launch is probably too large"):
        machine.launch(
            machine.kernel(INDEX + body, parameters=1),
            block=1024,
            grid=128,
            arrays=[machine.align(np.zeros(1024, np.uint32))],
            stop_at=200,
        )


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ({"block": (1, 1, 65)}, "block"),
        ({"grid": (1, 70000, 1)}, "grid"),
        ({"smem": 228 * 1024}, "232,448 at most"),
        ({"registers": 128, "block": 1024}, "too many resources requested"),
        ({"cluster": (32, 1, 1), "grid": 32}, "CTAs at most"),
        ({"cluster": (2, 1, 1), "grid": 3}, "no multiple of cluster"),
    ],
)
def test_what_the_architecture_does_not_have_is_refused_with_a_sentence(machine, sizes, sentence):
    with pytest.raises(BadLaunch, match=sentence):
        machine.launch(machine.kernel("", parameters=0), **sizes)


def test_the_element_of_an_access_outside_is_named(machine):
    result = machine.align(np.zeros(64, np.uint32))
    body = "mad.wide.u32 %rd80, %r98, 4, %rd90; st.global.v2.b32 [%rd80+248], {%r98, %r98};"
    with pytest.raises(OutOfBounds, match=r"index 64 of 0 to 63 \(4 bytes each\)"):
        findings(machine, body.replace("%rd80, %r98, 4", "%rd80, %r98, 8"), arrays=[result])


def test_warps_that_store_one_value_each_in_its_own_time_may_read_it(machine):
    body = f"""
    mov.b32 %r40, 0; shr.u32 %r41, %r99, 5;
TURN: setp.ne.u32 %p1, %r40, %r41; @%p1 bra NEXT;
    st.shared.b32 [flag], 5;
NEXT: add.s32 %r40, %r40, 1; setp.lt.u32 %p2, %r40, 4; @%p2 bra TURN;
    ld.shared.b32 %r50, [flag]; {STORE}"""
    assert findings(machine, body, block=128)[0] == []
    assert findings(machine, body.replace("[flag], 5", "[flag], %r41"), block=128)[0] == [("race", "decides")]
