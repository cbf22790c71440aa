"""Instructions that the machine does not know."""

import numpy as np
import pytest

from cutegen_nb.simulator.ptx.faults import SimulatorFault, UnsupportedOpcode

STORE = "mad.wide.u32 %rd80, %r98, 4, %rd90; st.global.b32 [%rd80], %r50;"
INDEX = "mov.u32 %r97, %ctaid.x; mov.u32 %r96, %ntid.x; mad.lo.s32 %r98, %r97, %r96, %r99;"


def outputs(machine, body, *, threads=64, ctas=1, before=""):
    result = machine.align(np.zeros(threads * ctas, np.uint32))
    text = machine.kernel(INDEX + body + STORE, parameters=1, before=before)
    profile = machine.launch(text, block=threads, grid=ctas, arrays=[result])
    return result.reshape(ctas, threads).astype(np.int64), profile


def test_an_unknown_instruction_stops_only_where_it_is_reached(machine):
    body = "mov.b32 %r50, 4; setp.ne.b32 %p1, %r99, 9999; @%p1 bra L0; .loc 1 12 3\n frobnicate.b32 %r50, %r50;\nL0: "
    got, _ = outputs(machine, body)
    assert (got == 4).all()
    with pytest.raises(SimulatorFault) as caught:
        outputs(machine, body.replace("9999", "5"))
    assert caught.value.not_judged is not None
    assert "'frobnicate.b32'" in str(caught.value)
    assert "candidate.py:12" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "add.strange.s32 %r50, %r99, 1;",
        "max.f64 %rd1, %rd2, %rd3, %rd4; mov.b32 %r50, 0;",
        "barrier.cluster.arrive.noComplete; mov.b32 %r50, 0;",
        "multimem.ld_reduce.global.add.u32 %r50, [%rd90];",
        "fma.rn.oob.f16 %rs1, %rs2, %rs3, %rs4; mov.b32 %r50, 0;",
        "shfl.bfly.b32 %r50, %r99, 1, 31;",
    ],
)
def test_a_form_that_is_not_known_is_never_guessed(machine, text):
    with pytest.raises(UnsupportedOpcode) as caught:
        outputs(machine, text)
    assert caught.value.verdict is None
    assert caught.value.finding.line == 10
