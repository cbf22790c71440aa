"""Loads and stores of all widths and types, through any window."""

import numpy as np
import pytest


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
