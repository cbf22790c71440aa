"""The table of what is simulated says what the machine does: every example runs, every opcode is in it."""

import numpy as np
import pytest

from cutegen_nb.simulator.isa.instruction_set import PRELUDE, InstructionForm, instruction_set, refusal_of
from cutegen_nb.simulator.machine.program import CONTROL
from cutegen_nb.simulator.ops.lowering import REGISTRY
from cutegen_nb.simulator.state.architectures import ARCHITECTURES

FORMS = instruction_set()
SUPPORTED = [form for form in FORMS if form.supported]


@pytest.mark.parametrize("form", SUPPORTED, ids=[f"{form.name}-{i}" for i, form in enumerate(SUPPORTED)])
def test_the_example_of_a_simulated_form_runs(machine, form):
    profile = machine.launch(PRELUDE.format(example=form.example), block=32)
    assert profile.counters.warp_instructions > 0


def test_every_opcode_of_the_machine_is_documented_with_an_example_that_runs():
    assert {form.name.split(".")[0] for form in SUPPORTED} == REGISTRY.keys() | CONTROL.keys()


def test_what_is_not_simulated_is_told_by_the_machine_itself():
    missing = {form.name for form in FORMS if not form.supported}
    assert {"tcgen05.mma.sp", "tex", "vadd4"} <= missing
    for form in FORMS:
        if form.example and not form.supported:
            assert "does not know PTX instruction" in form.why_not, form
    assert "frobnicate" in refusal_of("frobnicate.b32 %r2, %r3;")
    assert "PTX line" in refusal_of("add.s32 %r2 %r3 [;")
    assert "%other is not declared" in refusal_of("add.s32 %r2, %other, 1;")


@pytest.mark.parametrize(
    ("since", "on"),
    [
        ("sm_80", ARCHITECTURES),
        ("sm_86", ARCHITECTURES[1:]),
        ("sm_90", ARCHITECTURES[3:]),
        ("sm_90a", ("sm_90a",)),
        ("sm_90a+", ARCHITECTURES[3:]),
        ("sm_100", ARCHITECTURES[4:]),
        ("sm_100a", ("sm_100a", "sm_103a")),
        ("sm_103a", ("sm_103a",)),
        ("sm_121", ()),
    ],
)
def test_a_form_belongs_to_its_architecture_and_later_ones(since, on):
    form = InstructionForm(name="x", chapter="", since=since, forms="", example="", why_not="")
    assert tuple(one for one in ARCHITECTURES if form.on(one)) == on
    with pytest.raises(ValueError, match="sm_70"):
        form.on("sm_70")


def test_registers_of_128_bits_move_as_two_halves(machine):
    source = machine.align(np.arange(64 * 4, dtype=np.uint32))
    result = machine.align(np.zeros(64 * 4, np.uint32))
    body = """.reg .b128 %rq<4>; .shared .align 16 .b8 tile[1024];
    mad.wide.u32 %rd1, %r99, 16, %rd90; mad.wide.u32 %rd2, %r99, 16, %rd91;
    ld.global.b128 %rq1, [%rd1]; mov.b128 %rq2, %rq1; mov.b128 {%rd3, %rd4}, %rq2;
    mov.b128 %rq3, {%rd4, %rd3}; mov.b32 %r1, tile; mad.lo.s32 %r1, %r99, 16, %r1;
    and.b32 %r2, %r99, 1; setp.eq.b32 %p1, %r2, 0; @%p1 mov.b128 %rq3, %rq1;
    st.shared.b128 [%r1], %rq3; ld.shared.b128 %rq2, [%r1]; st.global.b128 [%rd2], %rq2;"""
    machine.launch(machine.kernel(body, parameters=2), block=64, arrays=[source, result])
    want = source.reshape(64, 2, 2).copy()
    want[1::2] = want[1::2, ::-1]
    assert (result.reshape(64, 2, 2) == want).all()
