"""Atomic operations on global memory."""

import numpy as np
import pytest

INDEX = "mov.u32 %r97, %ctaid.x; mov.u32 %r96, %ntid.x; mad.lo.s32 %r98, %r97, %r96, %r99;"


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
