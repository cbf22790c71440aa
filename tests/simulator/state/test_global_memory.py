"""Loads, stores, atomics and their counts; accesses that a GPU would fault on."""

import numpy as np
import pytest

from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.simulator.ptx.faults import BadLaunch, Misaligned, OutOfBounds
from cutegen_nb.simulator.state.global_memory import GlobalMemory

INDEX = "mov.u32 %r97, %ctaid.x; mov.u32 %r96, %ntid.x; mad.lo.s32 %r98, %r97, %r96, %r99;"


def copy_text(machine, stride=4, width="b32", register="%r1", extra=""):
    return machine.kernel(
        f"""{INDEX} {extra}
    mad.wide.s32 %rd1, %r98, {stride}, %rd90;
    mad.wide.s32 %rd2, %r98, {stride}, %rd91;
    .loc 1 20 9
    ld.global.{width} {register}, [%rd1];
    .loc 1 21 9
    st.global.{width} [%rd2], {register};
""",
        parameters=2,
    )


def test_coalesced_copy_moves_the_ideal_sectors_on_its_own_lines(machine):
    source = machine.align(np.arange(4096, dtype=np.uint32))
    result = machine.align(np.zeros(4096, np.uint32))
    profile = machine.launch(copy_text(machine), grid=32, block=128, arrays=[source, result])
    assert (source == result).all()
    counters = profile.counters
    assert (counters.gmem_load_bytes, counters.gmem_store_bytes) == (16384, 16384)
    assert (counters.gmem_load_sectors, counters.gmem_store_sectors) == (512, 512)
    assert (counters.gmem_ideal_sectors, counters.gmem_requests) == (1024, 256)
    assert profile.gmem_distinct_sectors == 1024
    by_line = {one.line: one.counters for one in profile.lines}
    assert by_line[20].gmem_load_sectors == 512
    assert by_line[20].gmem_store_sectors == 0
    assert by_line[21].gmem_store_sectors == 512
    assert all(one.file == "candidate.py" for one in profile.lines)


@pytest.mark.parametrize(("stride", "sectors"), [(4, 4), (8, 8), (32, 32), (64, 32)])
def test_strided_access_touches_more_sectors(machine, stride, sectors):
    source, result = (
        machine.align(np.zeros(64 * 8 * 16, np.uint32)),
        machine.align(np.zeros(64 * 8 * 16, np.uint32)),
    )
    profile = machine.launch(copy_text(machine, stride=stride), grid=8, block=64, arrays=[source, result])
    assert profile.counters.gmem_load_sectors == 8 * 2 * sectors
    assert profile.counters.gmem_ideal_sectors == 2 * 8 * 2 * 4


def test_shuffled_addresses_are_counted_by_warp(machine):
    order = np.random.default_rng(1).permutation(256).astype(np.uint32)
    table, source, result = (
        machine.align(order),
        machine.align(np.arange(256, dtype=np.uint32)),
        machine.align(np.zeros(256, np.uint32)),
    )
    text = machine.kernel(
        """mad.wide.u32 %rd1, %r99, 4, %rd90; ld.global.b32 %r1, [%rd1];
    mad.wide.u32 %rd2, %r1, 4, %rd91; ld.global.b32 %r2, [%rd2];
    mad.wide.u32 %rd3, %r99, 4, %rd92; st.global.b32 [%rd3], %r2;""",
        parameters=3,
    )
    profile = machine.launch(text, block=256, arrays=[table, source, result])
    assert (result == order).all()
    want = 32 + sum(len({int(one) // 8 for one in order[warp * 32 : warp * 32 + 32]}) for warp in range(8))
    assert profile.counters.gmem_load_sectors == want
    assert profile.counters.gmem_ideal_sectors == 3 * 32


@pytest.mark.parametrize("threads", [32, 40, 96, 100])
def test_vectors_of_all_widths_arrive_in_order(machine, threads):
    source = machine.align(np.arange(threads * 4, dtype=np.uint32) * 77)
    result = machine.align(np.zeros(threads * 4, np.uint32))
    text = machine.kernel(
        """mad.wide.u32 %rd1, %r99, 16, %rd90; mad.wide.u32 %rd2, %r99, 16, %rd91;
    ld.global.nc.L1::no_allocate.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];
    st.global.v2.b64 [%rd2], {%rd4, %rd5};""".replace(
            "st.global", "mov.b64 %rd4, {%r1, %r2}; mov.b64 %rd5, {%r3, %r4}; st.global"
        ),
        parameters=2,
    )
    profile = machine.launch(text, block=threads, arrays=[source, result])
    assert (source == result).all()
    assert profile.counters.gmem_load_sectors == threads * 16 // 32


def test_narrow_types_extend_by_their_sign(machine):
    source = machine.align(np.arange(256, dtype=np.uint8))
    result = machine.align(np.zeros(512, np.int32))
    text = machine.kernel(
        """cvt.u64.u32 %rd1, %r99; add.s64 %rd1, %rd1, %rd90;
    ld.global.s8 %r1, [%rd1]; ld.global.u8 %r2, [%rd1];
    mad.wide.u32 %rd2, %r99, 8, %rd91; st.global.v2.b32 [%rd2], {%r1, %r2};""",
        parameters=2,
    )
    machine.launch(text, block=256, arrays=[source, result])
    assert (result[0::2] == source.view(np.int8)).all()
    assert (result[1::2] == source).all()


def test_local_memory_is_each_threads_own(machine):
    result = machine.align(np.zeros(64, np.uint32))
    text = machine.kernel(
        """.local .align 8 .b8 depot[32]; .reg .b64 %SPL;
    mov.b64 %SPL, depot;
    st.local.b32 [%SPL+8], %r99;
    and.b32 %r1, %r99, 3; mad.wide.u32 %rd1, %r1, 4, %SPL;
    add.s32 %r2, %r99, 100; st.local.b32 [%rd1+16], %r2;
    ld.local.b32 %r3, [%rd1+16]; ld.local.b32 %r4, [%SPL+8];
    cvta.local.u64 %rd2, %SPL; ld.b32 %r5, [%rd2+8];
    add.s32 %r3, %r3, %r4; add.s32 %r3, %r3, %r5;
    mad.wide.u32 %rd3, %r99, 4, %rd90; st.global.b32 [%rd3], %r3;""",
        parameters=1,
    )
    profile = machine.launch(text, block=64, arrays=[result])
    assert (result == 3 * np.arange(64) + 100).all()
    assert profile.counters.gmem_load_sectors == 0


def test_generic_addresses_reach_shared_and_global(machine):
    source, result = machine.align(np.arange(64, dtype=np.uint32) + 5), machine.align(np.zeros(64, np.uint32))
    text = machine.kernel(
        """mov.b64 %rd1, buffer; cvta.shared.u64 %rd1, %rd1;
    mad.wide.u32 %rd2, %r99, 4, %rd1; mad.wide.u32 %rd3, %r99, 4, %rd90;
    ld.b32 %r1, [%rd3]; st.b32 [%rd2], %r1;
    setp.lt.u32 %p1, %r99, 32; selp.b64 %rd4, %rd2, %rd3, %p1;
    ld.b32 %r2, [%rd4];
    mad.wide.u32 %rd5, %r99, 4, %rd91; st.b32 [%rd5], %r2;""",
        parameters=2,
        before=".shared .align 4 .b8 buffer[256];",
    )
    machine.launch(text, block=64, arrays=[source, result])
    assert (result == source).all()


def shared_text(machine, address, width="b32", count=1):
    registers = ", ".join(f"%r{index}" for index in range(1, count + 1))
    vector = f"v{count}." if count > 1 else ""
    operand = f"{{{registers}}}" if count > 1 else registers
    return machine.kernel(
        f"""mov.b32 %r20, buffer; {address} add.s32 %r21, %r21, %r20;
    ld.shared.{vector}{width} {operand}, [%r21];
    mad.wide.u32 %rd1, %r99, 4, %rd90; st.global.b32 [%rd1], %r1;""",
        parameters=1,
        before=".extern .shared .align 16 .b8 buffer[];",
    )


@pytest.mark.parametrize(
    ("address", "passes"),
    [
        ("shl.b32 %r21, %r99, 2;", 1),
        ("shl.b32 %r21, %r99, 3;", 2),
        ("shl.b32 %r21, %r99, 7;", 32),
        ("mul.lo.s32 %r21, %r99, 132;", 1),
        ("mov.b32 %r21, 0;", 1),
        ("and.b32 %r21, %r99, 28;", 1),
    ],
)
def test_bank_conflicts_are_passes_over_the_banks(machine, address, passes):
    result = machine.align(np.zeros(64, np.uint32))
    profile = machine.launch(shared_text(machine, address), block=64, grid=2, arrays=[result], smem=64 * 132)
    assert profile.counters.smem_wavefronts == 2 * 2 * passes
    assert profile.counters.smem_ideal_wavefronts == 2 * 2
    assert profile.counters.smem_load_bytes == 2 * 64 * 4


def test_wide_shared_loads_are_served_in_quarters(machine):
    result = machine.align(np.zeros(32, np.uint32))
    profile = machine.launch(
        shared_text(machine, "shl.b32 %r21, %r99, 4;", count=4), arrays=[result], smem=512
    )
    assert (profile.counters.smem_wavefronts, profile.counters.smem_ideal_wavefronts) == (4, 4)


# -- atomics --------------------------------------------------------------------------------------------------
def test_atomic_sum_adds_every_thread_once(machine):
    total = machine.align(np.zeros(4, np.uint32))
    text = machine.kernel(
        f"{INDEX} red.global.add.u32 [%rd90], %r98; atom.global.max.u32 %r1, [%rd90+4], %r98;", parameters=1
    )
    profile = machine.launch(text, grid=9, block=96, arrays=[total])
    count = 9 * 96
    assert total.tolist() == [count * (count - 1) // 2, count - 1, 0, 0]
    assert profile.counters.gmem_atomic_sectors == 2 * 27
    assert profile.counters.gmem_store_bytes == 0


@pytest.mark.parametrize("space", ["global", "shared"])
def test_atomic_add_hands_out_distinct_old_values(machine, space):
    counter, result = machine.align(np.zeros(2, np.uint32)), machine.align(np.zeros(128, np.uint32))
    place = "[%rd90]" if space == "global" else "[cell]"
    text = machine.kernel(
        f"""st.shared.b32 [cell], 0; bar.sync 0; atom.{space}.add.u32 %r1, {place}, 3;
    mad.wide.u32 %rd1, %r99, 4, %rd91; st.global.b32 [%rd1], %r1;""",
        parameters=2,
        before=".shared .align 4 .b32 cell;",
    )
    machine.launch(text, block=128, arrays=[counter, result])
    assert sorted(result.tolist()) == [3 * index for index in range(128)]


def test_compare_and_swap_lets_one_thread_win(machine):
    cell, result = machine.align(np.zeros(1, np.uint32)), machine.align(np.zeros(64, np.uint32))
    text = machine.kernel(
        """add.s32 %r2, %r99, 1; atom.global.cas.b32 %r1, [%rd90], 0, %r2;
    mad.wide.u32 %rd1, %r99, 4, %rd91; st.global.b32 [%rd1], %r1;""",
        parameters=2,
    )
    machine.launch(text, block=64, arrays=[cell, result])
    assert cell[0] == 1
    assert result.tolist() == [0] + [1] * 63


def test_exchange_increment_and_float_add_return_what_was_there(machine):
    cells, result = machine.align(np.zeros(4, np.uint32)), machine.align(np.zeros(3 * 32, np.uint32))
    text = machine.kernel(
        """atom.global.exch.b32 %r1, [%rd90], %r99;
    atom.global.inc.u32 %r2, [%rd90+4], 9;
    mov.b32 %r9, 0f3F800000; atom.global.add.f32 %r3, [%rd90+8], %r9;
    mad.wide.u32 %rd1, %r99, 12, %rd91; st.global.b32 [%rd1], %r1; st.global.b32 [%rd1+4], %r2;
    st.global.b32 [%rd1+8], %r3;""",
        parameters=2,
    )
    profile = machine.launch(text, arrays=[cells, result])
    shown = result.reshape(32, 3)
    assert shown[:, 0].tolist() == [0, *range(31)]
    assert shown[:, 1].tolist() == [thread % 10 for thread in range(32)]
    assert shown[:, 2].copy().view(np.float32).tolist() == list(range(32))
    assert profile.counters.flops == {"cuda.f32": 32}


def test_packed_half_atomics_add_both_halves(machine):
    cell = machine.align(np.zeros(2, np.float16))
    machine.launch(
        machine.kernel("mov.b32 %r1, 0x40003C00; red.global.add.noftz.f16x2 [%rd90], %r1;", parameters=1),
        arrays=[cell],
    )
    assert cell.tolist() == [32.0, 64.0]


# -- asynchronous copies --------------------------------------------------------------------------------------
def async_text(machine, between):
    return machine.kernel(
        f"""mov.b32 %r20, buffer; mad.lo.s32 %r21, %r99, 4, %r20; mad.wide.u32 %rd1, %r99, 4, %rd90;
    st.shared.b32 [%r21], 77;
    cp.async.ca.shared.global [%r21], [%rd1], 4; cp.async.commit_group;
    {between}
    ld.shared.b32 %r1, [%r21];
    mad.wide.u32 %rd2, %r99, 4, %rd91; st.global.b32 [%rd2], %r1;""",
        parameters=2,
        before=".shared .align 16 .b8 buffer[256];",
    )


@pytest.mark.parametrize(
    ("between", "arrived"),
    [
        ("", False),
        ("cp.async.wait_group 1;", False),
        ("cp.async.wait_group 0;", True),
        ("cp.async.wait_all;", True),
    ],
)
def test_asynchronous_copy_arrives_at_its_wait_and_not_before(machine, between, arrived):
    source, result = machine.align(np.arange(64, dtype=np.uint32)), machine.align(np.zeros(64, np.uint32))
    machine.launch(async_text(machine, between), block=64, arrays=[source, result])
    assert (result == (source if arrived else 77)).all()


def test_asynchronous_copy_fills_the_rest_with_zeros(machine):
    source, result = (
        machine.align(np.arange(1, 65, dtype=np.uint32)),
        machine.align(np.full(64, 9, np.uint32)),
    )
    text = async_text(machine, "cp.async.wait_group 0;").replace("[%rd1], 4;", "[%rd1], 4, %r30;")
    text = text.replace(
        "st.shared.b32 [%r21], 77;", "and.b32 %r30, %r99, 1; shl.b32 %r30, %r30, 2; st.shared.b32 [%r21], 77;"
    )
    machine.launch(text, block=64, arrays=[source, result])
    assert (result == np.where(np.arange(64) % 2, source, 0)).all()


# -- faults ---------------------------------------------------------------------------------------------------
def test_access_past_the_end_names_tensor_thread_and_line(machine):
    source, result = machine.align(np.zeros(1000, np.uint32)), machine.align(np.zeros(1024, np.uint32))
    with pytest.raises(OutOfBounds) as caught:
        machine.launch(copy_text(machine), grid=4, block=256, arrays=[source, result], labels=["x", "y"])
    finding = caught.value.finding
    assert caught.value.verdict is Verdict.OUT_OF_BOUNDS
    assert (finding.line, finding.thread, finding.cta) == (20, (232, 0, 0), (3, 0, 0))
    assert "right past the end of tensor 'x' (4000 bytes)" in finding.message
    assert "candidate.py:20" in finding.message


def test_write_before_the_start_is_found_and_nothing_outside_is_touched(machine):
    room = machine.align(np.zeros(200, np.uint32))
    source, result = machine.align(np.ones(64, np.uint32)), room[100:164]
    text = copy_text(machine).replace("st.global.b32 [%rd2]", "st.global.b32 [%rd2+-4]")
    with pytest.raises(OutOfBounds, match="4 bytes before the start of tensor 'tensor1'"):
        machine.launch(text, block=64, arrays=[source, result])
    assert room.sum() == 0


def test_an_address_that_no_tensor_led_to_is_shown_as_it_is(machine):
    result = machine.align(np.zeros(64, np.uint32))
    text = machine.kernel("mov.b64 %rd1, 16;\nld.global.b32 %r1, [%rd1];", parameters=1)
    with pytest.raises(OutOfBounds, match="reads 4 bytes at address 0x10, nowhere near a tensor"):
        machine.launch(text, block=64, arrays=[result])


def test_a_guard_keeps_the_tail_inside(machine):
    source, result = machine.align(np.arange(1000, dtype=np.uint32)), machine.align(np.zeros(1000, np.uint32))
    text = copy_text(machine, extra="setp.ge.u32 %p1, %r98, 1000; @%p1 ret;")
    profile = machine.launch(text, grid=4, block=256, arrays=[source, result])
    assert (source == result).all()
    assert profile.counters.gmem_load_bytes == 4000


def test_misaligned_vector_names_the_address(machine):
    source, result = machine.align(np.zeros(256, np.uint32)), machine.align(np.zeros(256, np.uint32))
    text = copy_text(machine, stride=4, width="b64", register="%rd5")
    with pytest.raises(Misaligned, match="8-byte access at byte 4 of tensor 'tensor0'") as caught:
        machine.launch(text, block=64, arrays=[source, result])
    assert caught.value.finding.thread == (1, 0, 0)


def test_shared_memory_has_an_end(machine):
    result = machine.align(np.zeros(64, np.uint32))
    with pytest.raises(OutOfBounds, match="shared memory, of which the CTA has 128 bytes"):
        machine.launch(shared_text(machine, "shl.b32 %r21, %r99, 2;"), block=64, arrays=[result], smem=128)


def test_one_request_may_touch_several_tensors(machine):
    first, second, result = (machine.align(np.full(64, value, np.uint32)) for value in (1, 2, 0))
    text = machine.kernel(
        """and.b32 %r1, %r99, 1; setp.eq.b32 %p1, %r1, 0; selp.b64 %rd1, %rd90, %rd91, %p1;
    mad.wide.u32 %rd2, %r99, 4, %rd1; ld.global.b32 %r2, [%rd2];
    mad.wide.u32 %rd3, %r99, 4, %rd92; st.global.b32 [%rd3], %r2;""",
        parameters=3,
    )
    profile = machine.launch(text, block=64, arrays=[first, second, result])
    assert result.tolist() == [1, 2] * 32
    assert profile.counters.gmem_load_sectors == 2 * 8


def test_a_launch_that_a_gpu_refuses_is_refused(machine):
    with pytest.raises(BadLaunch, match="1025 threads"):
        machine.launch(machine.kernel("", parameters=0), block=1025)
    with pytest.raises(BadLaunch, match="no zero"):
        machine.launch(machine.kernel("", parameters=0), grid=0)


def test_registering_again_replaces_what_it_overlaps():
    room = np.zeros(4096, np.uint8)
    memory = GlobalMemory()
    address = room.ctypes.data
    memory.register(address, 100, "a")
    memory.register(address, 100, "b")
    assert "'b' (100 bytes)" in memory.describe(address, 1)
    memory.register(address, 200, "c")
    assert memory.find(address, address + 200) is not None
    memory.forget(address)
    assert memory.find(address, address + 1) is None
    assert memory.describe(address, 4) == "no tensor is registered"


def test_shared_memory_never_written_is_no_zero(machine):
    result = machine.align(np.zeros(32, np.float32))
    machine.launch(shared_text(machine, "shl.b32 %r21, %r99, 2;"), arrays=[result], smem=128)
    assert np.isnan(result).all()
