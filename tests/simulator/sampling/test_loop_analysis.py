"""Registers that steer a loop, and the periods until one of its comparisons changes."""

import math

import numpy as np
import pytest

from cutegen_nb.simulator.machine.program import program_of
from cutegen_nb.simulator.ptx.parser import parse
from cutegen_nb.simulator.sampling.loop_analysis import SteeringComparison, analysed, periods_left
from cutegen_nb.simulator.sampling.steps import UNCHANGED

LOOP = """
mov.b32 %r1, 0; mov.b64 %rd1, %rd90;
LOOP:
ld.global.b32 %r2, [%rd1];
add.u32 %r3, %r3, %r2;
add.u64 %rd1, %rd1, 4;
add.s32 %r1, %r1, 1;
setp.lt.s32 %p1, %r1, 100;
@%p1 bra LOOP;
st.global.b32 [%rd90], %r3;
"""


def test_the_counter_and_the_address_steer_and_the_data_do_not(machine):
    module = parse(machine.kernel(LOOP, parameters=1))
    program = program_of(module, next(iter(module.kernels.values())))
    found = [analysed(program, [at]) for at in range(len(program.segments))]
    loop = next(one for one in found if one.comparisons)
    slots = {name: program.lowering.register(name) for name in ("%r1", "%r2", "%r3", "%rd1", "%p1")}
    assert {slots["%r1"], slots["%rd1"], slots["%p1"]} <= set(loop.steering)
    assert not {slots["%r2"], slots["%r3"]} & set(loop.steering)
    assert [(one.kind, one.constants) for one in loop.comparisons] == [("s32", (0, 100))]
    assert not loop.synchronises


@pytest.mark.parametrize(
    ("value", "step", "periods"),
    [(40, 4, 15.0), (40, 0, math.inf), (140, 4, math.inf), (140, -4, 10.0), (101, 4, 0.0)],
)
def test_a_comparison_holds_until_its_difference_changes_sign(value, step, periods):
    less = SteeringComparison(kind="s32", operands=(0, -1), constants=(0, 100))
    steps = {0: np.array([[step]], np.uint32 if step >= 0 else np.int32) if step else UNCHANGED}
    assert periods_left(less, [np.array([[value]], np.uint32)], steps, None) == periods


def test_lanes_that_are_not_active_do_not_end_a_skip():
    less = SteeringComparison(kind="s32", operands=(0, -1), constants=(0, 100))
    registers, steps = [np.array([[40, 99]], np.uint32)], {0: np.array([[4, 4]], np.uint32)}
    assert periods_left(less, registers, steps, np.array([[True, False]])) == 15.0
    assert periods_left(less, registers, steps, None) < 1
