"""Findings in shared memory name threads, byte, both places and the next step."""

import numpy as np
import pytest

from cutegen_nb.simulator.checkers.findings import Findings

BUFFER = ".shared .align 16 .b8 buffer[1024];"
OWN = "mov.b32 %r20, buffer; shl.b32 %r21, %r99, 2; add.s32 %r21, %r21, %r20;"
STORE = "mad.wide.u32 %rd80, %r99, 4, %rd90; st.global.b32 [%rd80], %r50;"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "st.shared.b32 [%r21], %r99; xor.b32 %r22, %r21, 128; ld.shared.b32 %r50, [%r22];",
            ("of shared memory", "with no barrier between them", "cute.arch.sync_threads"),
        ),
        ("st.shared.b32 [%r20], %r99;", ("write different values to byte 0", "Let one thread write.")),
        ("ld.shared.b32 %r50, [%r21];", ("which nobody has written", "byte 0 of shared memory")),
    ],
)
def test_a_message_says_who_did_what_and_what_to_do(machine, body, words):
    result, found = machine.align(np.zeros(64, np.uint32)), Findings()
    text = machine.kernel(OWN + body + STORE, parameters=1, before=BUFFER)
    machine.launch(text, block=64, arrays=[result], findings=found)
    message = found.all()[0].message
    assert all(part in message for part in words), message
    assert "candidate.py:10" in message
