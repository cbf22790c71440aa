"""Reads of a thread's own arrays before it has written them."""

import numpy as np
import pytest

from cutegen_nb.simulator.checkers.findings import UNINITIALISED, Findings

ARRAY = ".local .align 16 .b8 own[64]; mov.u64 %rd1, own;"
STORE = "mad.wide.u32 %rd80, %r99, 4, %rd90; st.global.b32 [%rd80], %r50;"


def kinds(machine, body):
    result, found = machine.align(np.zeros(64, np.uint32)), Findings()
    machine.launch(
        machine.kernel(ARRAY + body + STORE, parameters=1), block=64, arrays=[result], findings=found
    )
    return [one.kind for one in found.all()]


def test_what_was_written_may_be_read(machine):
    assert kinds(machine, "st.local.b32 [%rd1], %r99; ld.local.b32 %r50, [%rd1];") == []
    everywhere = "st.local.v4.b32 [%rd1], {%r99, %r99, %r99, %r99}; and.b32 %r1, %r99, 3;"
    own = "mad.wide.u32 %rd2, %r1, 4, %rd1; ld.local.b32 %r50, [%rd2];"
    assert kinds(machine, everywhere + own) == []


@pytest.mark.parametrize(
    "body",
    [
        "ld.local.b32 %r50, [%rd1];",
        "st.local.b32 [%rd1], %r99; ld.local.b32 %r50, [%rd1+4];",
        "setp.lt.u32 %p1, %r99, 32; @%p1 st.local.b32 [%rd1], %r99; ld.local.b32 %r50, [%rd1];",
        "and.b32 %r1, %r99, 7; mad.wide.u32 %rd2, %r1, 4, %rd1; st.local.b32 [%rd2], 1; ld.local.b32 %r50, [%rd1];",
    ],
)
def test_what_some_thread_did_not_write_is_found_once(machine, body):
    assert kinds(machine, body) == [UNINITIALISED]
