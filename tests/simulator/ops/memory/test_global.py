"""Requests to global memory reach the tensors that hold their addresses."""

import numpy as np
import pytest

from cutegen_nb.simulator.ptx.faults import OutOfBounds

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


def test_write_before_the_start_is_found_and_nothing_outside_is_touched(machine):
    room = machine.align(np.zeros(200, np.uint32))
    source, result = machine.align(np.ones(64, np.uint32)), room[100:164]
    text = copy_text(machine).replace("st.global.b32 [%rd2]", "st.global.b32 [%rd2+-4]")
    with pytest.raises(OutOfBounds, match="4 bytes beginning 4 bytes before the start of tensor 'tensor1'"):
        machine.launch(text, block=64, arrays=[source, result])
    assert room.sum() == 0


def test_a_guard_keeps_the_tail_inside(machine):
    source, result = machine.align(np.arange(1000, dtype=np.uint32)), machine.align(np.zeros(1000, np.uint32))
    text = copy_text(machine, extra="setp.ge.u32 %p1, %r98, 1000; @%p1 ret;")
    profile = machine.launch(text, grid=4, block=256, arrays=[source, result])
    assert (source == result).all()
    assert profile.counters.gmem_load_bytes == 4000


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
