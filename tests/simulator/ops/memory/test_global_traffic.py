"""Sectors and requests of global memory, counted by warp."""

import numpy as np
import pytest

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
