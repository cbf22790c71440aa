"""Every count of a launch, against a kernel small enough to count by hand."""

import struct

import numpy as np
import pytest

from cutegen_nb.core.profile import Access


def test_instructions_by_pipe_add_up_to_all_of_them(machine):
    result = machine.align(np.zeros(128, np.uint32))
    text = machine.kernel(
        """mad.wide.u32 %rd1, %r99, 4, %rd90; add.s32 %r1, %r99, 1; cvt.rn.f32.u32 %r2, %r1;
    add.rn.f32 %r3, %r2, %r2; ex2.approx.f32 %r4, %r3; st.global.b32 [%rd1], %r4; bar.sync 0;""",
        parameters=1,
    )
    counters = machine.launch(text, block=128, arrays=[result]).counters

    assert counters.instructions == {
        "alu": 4, "barrier": 4, "control": 4, "convert": 4, "fp32": 4, "integer-multiply": 4,
        "load.param": 4, "move": 4, "special": 4, "store.global": 4,
    }  # fmt: skip
    assert sum(counters.instructions.values()) == counters.warp_instructions
    assert counters.flops == {"cuda.f32": 2 * 128}
    assert counters.active_lane_fraction == 1.0


def test_flops_count_two_for_a_multiply_add_two_for_a_pair_and_none_for_a_choice(machine):
    text = machine.kernel(
        """fma.rn.f32 %r1, %r2, %r3, %r4; fma.rn.f16x2 %r1, %r2, %r3, %r4; add.rn.bf16x2 %r1, %r2, %r3;
    mul.rn.f64 %rd1, %rd2, %rd3; add.rn.f16 %rs1, %rs2, %rs3; sqrt.approx.f32 %r1, %r2;
    setp.lt.f32 %p1, %r1, %r2; selp.b32 %r1, %r2, %r3, %p1; cvt.rn.f16.f32 %rs1, %r1; neg.f32 %r1, %r2;
    add.s32 %r1, %r2, %r3;"""
    )
    counters = machine.launch(text, block=32).counters

    assert counters.flops == {
        "cuda.bf16": 2 * 32, "cuda.f16": (4 + 1) * 32, "cuda.f32": (2 + 1) * 32, "cuda.f64": 32,
    }  # fmt: skip


def test_a_predicate_takes_threads_away_but_no_warp(machine):
    text = machine.kernel("setp.lt.u32 %p1, %r99, 8; @%p1 add.rn.f32 %r1, %r2, %r3;")
    counters = machine.launch(text, block=64).counters

    assert counters.instructions["fp32"] == 2
    assert counters.flops == {"cuda.f32": 8}
    assert counters.thread_instructions == 64 * 4  # tid, setp, add, ret
    assert counters.thread_instructions_on == 64 * 3 + 8


def test_lanes_that_a_branch_leaves_idle_lower_the_active_share(machine):
    text = machine.kernel(
        """setp.ge.u32 %p1, %r99, 8; @%p1 bra DONE;
    add.s32 %r1, %r2, %r3; add.s32 %r1, %r2, %r3; add.s32 %r1, %r2, %r3; add.s32 %r1, %r2, %r3;
DONE:
"""
    )
    counters = machine.launch(text, block=32).counters

    assert counters.divergent_branches == 1
    assert counters.active_lane_fraction == (4 * 32 + 4 * 8) / (8 * 32)


def test_accesses_are_told_apart_by_kind(machine):
    source, result = machine.align(np.ones(64, np.uint32)), machine.align(np.zeros(64, np.uint32))
    text = machine.kernel(
        """.shared .align 16 .b8 tile[1024];
    mad.wide.u32 %rd1, %r99, 4, %rd90; mad.wide.u32 %rd2, %r99, 4, %rd91;
    mov.u32 %r1, tile; mad.lo.u32 %r2, %r99, 4, %r1; mad.lo.u32 %r3, %r99, 16, %r1;
    ld.global.b32 %r10, [%rd1];
    st.global.b32 [%rd2], %r10;
    red.global.add.u32 [%rd91], %r10;
    atom.global.add.u32 %r11, [%rd2], %r10; st.shared.b32 [%r2], %r11;
    cp.async.ca.shared.global [%r2], [%rd1], 4; cp.async.wait_all;
    bar.sync 0;
    ld.shared.b32 %r12, [%r3];
    st.global.b32 [%rd2], %r12;""",
        parameters=2,
    )
    counters = machine.launch(text, block=64, arrays=[source, result]).counters

    assert counters.gmem_accesses == {
        "async-copy": Access(requests=2, bytes=256, passes=8, ideal=8),
        "atomic": Access(requests=2, bytes=256, passes=8, ideal=8),
        "load": Access(requests=2, bytes=256, passes=8, ideal=8),
        "reduction": Access(requests=2, bytes=256, passes=2, ideal=2),
        "store": Access(requests=4, bytes=512, passes=16, ideal=16),
    }
    assert counters.gmem_requests == sum(one.requests for one in counters.gmem_accesses.values())
    assert counters.gmem_sectors == sum(one.passes for one in counters.gmem_accesses.values())
    assert counters.smem_accesses == {
        "async-copy": Access(requests=2, bytes=256, passes=2, ideal=2),
        "load": Access(requests=2, bytes=256, passes=8, ideal=2),
        "store": Access(requests=2, bytes=256, passes=2, ideal=2),
    }
    assert counters.smem_accesses["load"].efficiency == 0.25
    assert counters.smem_wavefronts == 12


def test_local_memory_is_counted_in_bytes_through_either_window(machine):
    text = machine.kernel(
        """.local .align 8 .b8 depot[32]; .reg .b64 %SPL;
    mov.b64 %SPL, depot; st.local.b32 [%SPL+8], %r99; ld.local.b64 %rd3, [%SPL+8];
    cvta.local.u64 %rd2, %SPL; ld.b32 %r5, [%rd2+8];"""
    )
    counters = machine.launch(text, block=64).counters

    assert (counters.local_load_bytes, counters.local_store_bytes) == (64 * 12, 64 * 4)


def test_lines_add_up_to_the_launch(machine):
    source, result = machine.align(np.ones(256, np.float32)), machine.align(np.zeros(256, np.float32))
    text = machine.kernel(
        """mad.wide.u32 %rd1, %r99, 4, %rd90; mad.wide.u32 %rd2, %r99, 4, %rd91;
    .loc 1 20 9
    ld.global.b32 %r1, [%rd1];
    .loc 1 21 9
    add.rn.f32 %r1, %r1, %r1;
    setp.gt.f32 %p1, %r1, 0f00000000;
    @%p1 st.global.b32 [%rd2], %r1;
    .loc 1 22 9
    bar.sync 0;""",
        parameters=2,
    )
    profile = machine.launch(text, block=100, grid=2, arrays=[source, result])
    total = profile.lines[0].counters
    for line in profile.lines[1:]:
        total += line.counters

    assert total == profile.counters
    assert {line.line for line in profile.lines} == {10, 20, 21, 22}
    by_line = {line.line: line.counters for line in profile.lines}
    assert by_line[20].gmem_accesses.keys() == {"load"}
    assert by_line[21].flops == {"cuda.f32": 200}
    assert by_line[22].barriers == 2 * 4


def test_a_launch_is_counted_afresh(machine):
    result = machine.align(np.zeros(64, np.uint32))
    text = machine.kernel(
        "ld.param.b32 %r1, [p1]; mad.wide.u32 %rd1, %r99, 4, %rd90; st.global.b32 [%rd1], %r1;", parameters=1
    ).replace(".param .u64 p0", ".param .u64 p0, .param .u32 p1")

    first, second = (
        machine.launch(text, block=64, arrays=[result], scalars=[struct.pack("<I", value)]).counters
        for value in (3, 4)
    )
    assert first == second


@pytest.mark.parametrize(
    ("size_operand", "sectors", "passes"),
    [("", 16, 4), (", 16", 16, 4), (", 0", 0, 4), (", %r5", 8, 4)],
)
def test_an_asynchronous_copy_is_counted_with_both_of_its_addresses(machine, size_operand, sectors, passes):
    source = machine.align(np.arange(256, dtype=np.uint32))
    text = machine.kernel(
        f""".shared .align 16 .b8 tile[1024];
    mad.wide.u32 %rd1, %r99, 16, %rd90; mov.u32 %r1, tile; mad.lo.u32 %r2, %r99, 16, %r1;
    setp.lt.u32 %p1, %r99, 16; selp.u32 %r5, 16, 0, %p1;
    cp.async.cg.shared.global [%r2], [%rd1], 16{size_operand}; cp.async.wait_all;""",
        parameters=1,
    )
    counters = machine.launch(text, block=32, grid=3, arrays=[source]).counters

    asked = counters.gmem_accesses.get("async-copy", Access())
    assert asked.passes == 3 * sectors
    assert counters.smem_accesses["async-copy"] == Access(
        requests=3, bytes=3 * 512, passes=3 * passes, ideal=12
    )


def test_a_copy_scattered_in_global_memory_takes_a_pass_for_each_line(machine):
    source = machine.align(np.arange(2048, dtype=np.uint32))
    text = machine.kernel(
        """.shared .align 16 .b8 tile[1024];
    mad.wide.u32 %rd1, %r99, 128, %rd90; mov.u32 %r1, tile; mad.lo.u32 %r2, %r99, 4, %r1;
    cp.async.ca.shared.global [%r2], [%rd1], 4; cp.async.wait_all;""",
        parameters=1,
    )
    counters = machine.launch(text, block=32, arrays=[source]).counters

    assert counters.smem_accesses["async-copy"] == Access(requests=1, bytes=128, passes=32, ideal=1)
