"""Calls of functions are written out in their callers."""

import numpy as np
import pytest

from cutegen_nb.simulator.ptx.faults import UnsupportedOpcode

STORE = "mad.wide.u32 %rd80, %r99, 4, %rd90; st.global.b32 [%rd80], %r50;"


def outputs(machine, body, *, threads=64, before=""):
    result = machine.align(np.zeros(threads, np.uint32))
    machine.launch(machine.kernel(body + STORE, parameters=1, before=before), block=threads, arrays=[result])
    return result.astype(np.int64)


DOUBLE = """.func (.param .b32 out) double(.param .b32 in) { .reg .b32 %r<3>;
ld.param.b32 %r1, [in]; add.s32 %r2, %r1, %r1; st.param.b32 [out], %r2; ret; }"""
CALL = "{{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r99; st.param.b32 [b], 7; {call} ld.param.b32 %r50, [b]; }}"


def test_a_guarded_call_is_made_by_those_for_whom_the_guard_holds(machine):
    body = "setp.lt.u32 %p1, %r99, 20; " + CALL.format(call="@%p1 call.uni (b), double, (a);")
    got = outputs(machine, body, before=DOUBLE)
    assert got.tolist() == [2 * t if t < 20 else 7 for t in range(64)]
    got = outputs(machine, body.replace("@%p1 call", "@!%p1 call"), before=DOUBLE)
    assert got.tolist() == [2 * t if t >= 20 else 7 for t in range(64)]


@pytest.mark.parametrize(
    ("call", "before", "why"),
    [
        ("call.uni (b), again, (a);", DOUBLE.replace("double", "again").replace(
            "ld.param", "{ .param .b32 x; .param .b32 y; call.uni (y), again, (x); } ld.param"), "calls itself"),
        ("call.uni (b), double, (a, a);", DOUBLE, "another number of arguments"),
        ("call.uni (b), nowhere, (a);", DOUBLE, "has no body in this module"),
        ("call.uni (b), %rd1, (a);", DOUBLE, "through a register"),
    ],
    ids=["recursion", "arguments", "no body", "indirect"],
)  # fmt: skip
def test_a_call_that_cannot_be_written_out_is_refused_by_a_sentence(machine, call, before, why):
    with pytest.raises(UnsupportedOpcode, match=why):
        outputs(machine, CALL.format(call=call), before=before)
    skipped = (
        "setp.ne.u32 %p1, %r99, %r99; mov.b32 %r50, 3; @!%p1 bra OVER;" + CALL.format(call=call) + " OVER: "
    )
    assert (outputs(machine, skipped, before=before) == 3).all()
