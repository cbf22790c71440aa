"""Asynchronous copies arrive at their wait."""

import numpy as np
import pytest


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
