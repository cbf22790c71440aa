"""Places where a warp waits for global memory, by the code alone."""

from cutegen_nb.simulator.counters.load_use_distance import LONGEST_DISTANCE, LoadWait, waits
from cutegen_nb.simulator.machine.register_uses import registers_of
from cutegen_nb.simulator.ptx import parser as ptx
from cutegen_nb.simulator.ptx.inlining import flatten

_HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .b64 %rd<9>;
.reg .b32 %r<9>;
.reg .f32 %f<9>;
.reg .pred %p<3>;
.shared .align 4 .b8 tile[1024];
"""


def found(code):
    module = ptx.parse(f"{_HEAD}{code}\nret;\n}}\n")
    flat = flatten(module, module.kernels["k"])
    return waits(flat.body, flat.labels, registers_of)


def test_a_load_used_at_once_behind_a_barrier_is_a_wait_and_the_first_loads_of_a_kernel_are_none():
    code = """ld.global.f32 %f1, [%rd1];
    st.shared.f32 [tile], %f1;
    bar.sync 0;
    ld.global.f32 %f2, [%rd1+4];
    st.shared.f32 [tile], %f2;"""
    assert found(code) == (LoadWait(load=3, distance=1),)


def test_of_loads_under_way_together_the_first_used_is_the_wait():
    code = """bar.sync 0;
    ld.global.f32 %f1, [%rd1];
    ld.global.f32 %f2, [%rd1+4];
    add.f32 %f3, %f2, %f2;
    add.f32 %f4, %f1, %f1;"""
    assert found(code) == (LoadWait(load=2, distance=1),)


def test_a_register_that_is_handed_on_to_the_next_turn_is_used_there():
    code = """ld.global.f32 %f1, [%rd1];
    $again:
    st.shared.f32 [tile], %f1;
    ld.global.f32 %f2, [%rd1+4];
    bar.sync 0;
    ld.shared.f32 %f3, [tile];
    add.f32 %f4, %f4, %f3;
    bar.sync 0;
    mov.f32 %f1, %f2;
    @%p1 bra $again;"""
    assert found(code) == (LoadWait(load=2, distance=7),)


def test_a_copy_is_waited_for_where_so_many_groups_may_be_left():
    def code(left):
        return f"""bar.sync 0;
        cp.async.ca.shared.global [tile], [%rd1], 4;
        cp.async.commit_group;
        cp.async.ca.shared.global [tile+4], [%rd1+4], 4;
        cp.async.commit_group;
        add.f32 %f1, %f1, %f1;
        cp.async.wait_group {left};
        add.f32 %f1, %f1, %f1;
        cp.async.wait_group 0;"""

    assert found(code(0)) == (LoadWait(load=3, distance=3),)
    assert found(code(1)) == (LoadWait(load=1, distance=5),)


def test_what_is_used_far_away_or_never_is_no_long_wait():
    far = "bar.sync 0;\nld.global.f32 %f1, [%rd1];\n" + "add.f32 %f2, %f2, %f2;\n" * 2000
    assert found(f"{far}st.shared.f32 [tile], %f1;") == (LoadWait(load=1, distance=LONGEST_DISTANCE),)
    assert found("bar.sync 0;\nld.global.f32 %f1, [%rd1];") == ()


def test_without_a_barrier_the_assembler_is_free_to_ask_earlier():
    assert found("ld.global.f32 %f1, [%rd1];\nadd.f32 %f1, %f1, %f1;") == ()
    assert found("ld.global.f32 %f1, [%rd1];\nbar.warp.sync -1;\nadd.f32 %f1, %f1, %f1;") == ()


def test_a_bulk_copy_is_not_followed():
    """It completes at an mbarrier, which other warps wait for."""
    code = """bar.sync 0;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2];
    cp.async.bulk.wait_group 0;"""
    assert found(code) == ()
