"""The table of what is simulated says what the machine does: every example runs, every opcode is in it."""

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
