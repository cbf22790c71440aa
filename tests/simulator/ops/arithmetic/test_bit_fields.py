"""Bit fields at the ends of a word: extracted, inserted, beyond the width."""

import numpy as np
import pytest

WORD = 0x87654321


def run(machine, instruction):
    body = f"mov.b32 %r10, {WORD}; {instruction} st.global.b32 [%rd90], %r50;"
    result = machine.align(np.zeros(32, np.uint32))
    machine.launch(machine.kernel(body, parameters=1), block=1, arrays=[result])
    return int(result[0])


@pytest.mark.parametrize(
    ("instruction", "wanted"),
    [
        ("bfe.u32 %r50, %r10, 4, 8;", 0x32),
        ("bfe.s32 %r50, %r10, 28, 4;", 0xFFFFFFF8),
        ("bfe.u32 %r50, %r10, 28, 16;", 0x8),  # the field reaches beyond the word
        ("bfe.s32 %r50, %r10, 40, 8;", 0xFFFFFFFF),  # begins beyond it: the sign of the word
        ("bfe.s32 %r50, %r10, 4, 0;", 0),
        ("bfi.b32 %r50, 255, %r10, 8, 4;", 0x87654F21),
        ("bfi.b32 %r50, 255, %r10, 32, 4;", WORD),
        ("bmsk.clamp.b32 %r50, 4, 8;", 0xFF0),
        ("bmsk.clamp.b32 %r50, 32, 8;", 0),
        ("szext.clamp.s32 %r50, 12, 4;", 0xFFFFFFFC),
        ("szext.clamp.u32 %r50, 12, 3;", 4),
        ("fns.b32 %r50, %r10, 0, 3;", 8),
        ("fns.b32 %r50, %r10, 31, -2;", 26),
        ("fns.b32 %r50, 0, 0, 1;", 0xFFFFFFFF),
    ],
)
def test_a_field_is_what_the_isa_says(machine, instruction, wanted):
    assert run(machine, instruction) == wanted
