"""Operands kept as a column of CTAs plus a row of threads give what the same numbers give one by one."""

import numpy as np
import pytest

from cutegen_nb.simulator.isa.arithmetic import ARITHMETIC
from cutegen_nb.simulator.isa.instruction_set import instruction_set
from cutegen_nb.simulator.isa.movement import MOVEMENT

CHAPTER = "Data Movement and Conversion Instructions"
MOVES = ("mov", "shfl.sync", "prmt", "cvt", "cvt.pack", "cvta")
EXAMPLES = [
    form.example
    for form in instruction_set()
    if form.supported and (form.chapter in ARITHMETIC or (form.chapter == CHAPTER and form.name in MOVES))
    if "%rq" not in form.example and "%rd1" not in form.example
]
THREADS, CTAS = 64, 3
INDEX = "mov.u32 %r97, %ctaid.x; mov.u32 %r96, %ntid.x; mad.lo.s32 %r98, %r97, %r96, %r99;"
SOURCES = """add.s32 %r3, %r98, 0; mad.lo.s32 %r4, %r98, 3, 5; shl.b32 %r5, %r98, 20;
cvt.u64.u32 %rd5, %r3; mad.wide.u32 %rd6, %r98, 7, %rd5; cvt.u64.u32 %rd7, %r4;
cvt.u16.u32 %rs3, %r3; cvt.u16.u32 %rs4, %r4; cvt.u16.u32 %rs5, %r5;"""
REGISTERS = [*((f"%r{i}", "b32") for i in (3, 4, 5)), *((f"%rd{i}", "b64") for i in (5, 6, 7)), *((f"%rs{i}", "b16") for i in (3, 4, 5))]  # fmt: skip


def through_memory():
    """Store every operand and load it again, so that it comes back as a plain array."""
    lines = ["mad.wide.u32 %rd80, %r98, 128, %rd90;"]
    for index, (name, kind) in enumerate(REGISTERS):
        lines += [
            f"st.global.{kind} [%rd80+{8 * index}], {name};",
            f"ld.global.{kind} {name}, [%rd80+{8 * index}];",
        ]
    return "\n".join(lines)


def outputs(machine, example, *, plain):
    room = machine.align(np.zeros((CTAS * THREADS, 16), np.uint64))
    result = machine.align(np.zeros((CTAS * THREADS, 4), np.uint64))
    body = f"""{INDEX} mov.b32 %r2, 0; mov.b64 %rd4, 0; mov.b16 %rs2, 0; setp.lt.u32 %p2, %r99, 9;
    setp.ne.b32 %p1, %r99, %r99; setp.ne.b32 %p3, %r99, %r99; {SOURCES} {through_memory() if plain else ""}
    {example}
    mad.wide.u32 %rd81, %r98, 32, %rd91; cvt.u32.u16 %r95, %rs2; selp.b32 %r94, 1, 0, %p1; selp.b32 %r93, 2, 0, %p3;
    or.b32 %r94, %r94, %r93; st.global.b32 [%rd81], %r2; st.global.b64 [%rd81+8], %rd4;
    st.global.b32 [%rd81+16], %r95; st.global.b32 [%rd81+24], %r94;"""
    machine.launch(machine.kernel(body, parameters=2), block=THREADS, grid=CTAS, arrays=[room, result])
    return result


@pytest.mark.every(test=3)
@pytest.mark.parametrize("example", EXAMPLES)
def test_parts_kept_apart_give_what_whole_numbers_give(machine, example):
    apart, whole = (outputs(machine, example, plain=plain) for plain in (False, True))
    assert (apart == whole).all()


def test_the_chapters_compared_are_the_documented_ones():
    assert CHAPTER in MOVEMENT
    assert len(EXAMPLES) > 80
