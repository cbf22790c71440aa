"""Carries and borrows pass from one instruction to the next."""

import numpy as np
import pytest

STORE = "mad.wide.u32 %rd80, %r99, 8, %rd92; st.global.v2.b32 [%rd80], {%r50, %r51};"
LOAD = "mad.wide.u32 %rd8{n}, %r99, 8, %rd9{n}; ld.global.v2.b32 {{%r{a}, %r{b}}}, [%rd8{n}];"


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        ("add.cc.u32 %r50, %r10, %r20;", "addc.u32 %r51, %r11, %r21;", lambda x, y: x + y),
        ("sub.cc.u32 %r50, %r10, %r20;", "subc.u32 %r51, %r11, %r21;", lambda x, y: x - y),
    ],
)
def test_two_words_with_a_carry_are_one_number_of_64_bits(machine, low, high, wanted):
    edges = [0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1]
    x = np.array([a for a in edges for _ in edges][:32], np.uint64)
    y = np.array((edges * len(edges))[:32], np.uint64)
    given = [machine.align(one.view(np.uint32)) for one in (x, y, np.zeros(32, np.uint64))]
    body = LOAD.format(n=0, a=10, b=11) + LOAD.format(n=1, a=20, b=21) + low + high + STORE
    machine.launch(machine.kernel(body, parameters=3), arrays=given)
    assert (given[2].view(np.uint64) == wanted(x, y)).all()


def test_an_instruction_without_cc_leaves_the_carry_as_it_is(machine):
    body = (
        "mov.b32 %r1, -1; add.cc.u32 %r2, %r1, 1; add.u32 %r3, %r1, 0; addc.u32 %r50, %r99, 0;"
        "mad.wide.u32 %rd80, %r99, 4, %rd90; st.global.b32 [%rd80], %r50;"
    )
    result = machine.align(np.zeros(32, np.uint32))
    machine.launch(machine.kernel(body, parameters=1), arrays=[result])
    assert (result == np.arange(32) + 1).all()


@pytest.mark.parametrize(
    ("first", "body", "wanted"),
    [
        ("sub.cc.u32 %r5, 0, 1;", "subc.cc.u32 %r6, 5, 5; subc.u32 %r50, 9, 9;", 2**32 - 1),
        ("add.cc.u32 %r5, -1, 1;", "addc.cc.u32 %r6, 5, -1; addc.u32 %r50, 9, 9;", 19),
    ],
)
def test_a_carry_goes_through_words_that_only_it_overflows(machine, first, body, wanted):
    result = machine.align(np.zeros(32, np.uint32))
    text = machine.kernel(f"{first} {body} st.global.b32 [%rd90], %r50;", parameters=1)
    machine.launch(text, block=1, arrays=[result])
    assert int(result[0]) == wanted
