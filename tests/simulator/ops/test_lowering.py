"""Modifiers of an instruction are taken one by one, and what is left over is refused by name."""

import pytest

from cutegen_nb.simulator.ops.lowering import Modifiers
from cutegen_nb.simulator.ptx.faults import UnsupportedOpcode
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.ptx.parser import parse


@pytest.fixture
def modifiers(machine):
    def of(text) -> Modifiers:
        (kernel,) = parse(machine.kernel(text)).kernels.values()
        item: Instruction = next(
            one for one in kernel.body if "." in one.name and one.opcode in text.split(".")[0]
        )
        return Modifiers(item)

    return of


def test_flags_choices_and_types_are_taken_in_any_order(modifiers):
    found = modifiers("mad.lo.sat.s32 %r1, %r2, %r3, %r4;")
    assert found.one("hi", "lo", "wide") == "lo"
    assert found.flag("sat")
    assert not found.flag("sat")
    assert found.one("rn", default="none") == "none"
    assert found.types() == ("s32",)
    found.done()


def test_a_modifier_that_is_left_over_is_named(modifiers):
    found = modifiers("add.ftz.f32 %r1, %r2, %r3;")
    found.only_type()
    with pytest.raises(UnsupportedOpcode, match=r"modifier \.ftz"):
        found.done()


def test_two_types_are_not_one(modifiers):
    with pytest.raises(UnsupportedOpcode):
        modifiers("cvt.u32.u16 %r1, %rs2;").only_type()
    assert modifiers("cvt.u32.u16 %r1, %rs2;").types(2) == ("u32", "u16")


def test_hints_that_change_no_value_are_passed_over(modifiers):
    found = modifiers("ld.global.L2::128B.b32 %r1, [%rd1];")
    found.skip("L2", "global")
    assert found.types() == ("b32",)
    found.done()
