"""Addresses outside and misaligned addresses are named with tensor, thread and line."""

import numpy as np
import pytest

from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.simulator.ptx.faults import Misaligned, OutOfBounds

INDEX = "mov.u32 %r97, %ctaid.x; mov.u32 %r96, %ntid.x; mad.lo.s32 %r98, %r97, %r96, %r99;"


def copy_text(machine, stride=4, width="b32", register="%r1", extra=""):
    return machine.kernel(
        f"""{INDEX} {extra}
    mad.wide.s32 %rd1, %r98, {stride}, %rd90;
    mad.wide.s32 %rd2, %r98, {stride}, %rd91;
    .loc 1 20 9
    ld.global.{width} {register}, [%rd1];
    .loc 1 21 9
    st.global.{width} [%rd2], {register};
""",
        parameters=2,
    )


def test_access_past_the_end_names_tensor_thread_and_line(machine):
    source, result = machine.align(np.zeros(1000, np.uint32)), machine.align(np.zeros(1024, np.uint32))
    with pytest.raises(OutOfBounds) as caught:
        machine.launch(copy_text(machine), grid=4, block=256, arrays=[source, result], labels=["x", "y"])
    finding = caught.value.finding
    assert caught.value.verdict is Verdict.OUT_OF_BOUNDS
    assert (finding.line, finding.thread, finding.cta) == (20, (232, 0, 0), (3, 0, 0))
    assert "right past the end of tensor 'x' (4000 bytes)" in finding.message
    assert "candidate.py:20" in finding.message


def test_an_address_that_no_tensor_led_to_is_shown_as_it_is(machine):
    result = machine.align(np.zeros(64, np.uint32))
    # Beyond all addresses of a process: its heap may begin below 1 GiB, so that even address 16 is near a tensor.
    text = machine.kernel(f"mov.b64 %rd1, {2**62};\nld.global.b32 %r1, [%rd1];", parameters=1)
    with pytest.raises(OutOfBounds, match=f"reads 4 bytes at address {2**62:#x}, nowhere near a tensor"):
        machine.launch(text, block=64, arrays=[result])


def test_misaligned_vector_names_the_address(machine):
    source, result = machine.align(np.zeros(256, np.uint32)), machine.align(np.zeros(256, np.uint32))
    text = copy_text(machine, stride=4, width="b64", register="%rd5")
    with pytest.raises(Misaligned, match="8-byte access at byte 4 of tensor 'tensor0'") as caught:
        machine.launch(text, block=64, arrays=[source, result])
    assert caught.value.finding.thread == (1, 0, 0)
