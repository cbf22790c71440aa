"""Matrix instructions need whole warps."""

import pytest

from cutegen_nb.simulator.ops.warp.fragments import PartialWarp
from cutegen_nb.simulator.ptx.faults import Deadlock

NAME = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
OPERANDS = "{%r1, %r2, %r3, %r4}, {%r10, %r11}, {%r12}, {%r13, %r14, %r15, %r16}"


def test_a_guard_that_holds_for_part_of_a_warp_is_named(machine):
    text = machine.kernel(f"setp.lt.u32 %p1, %r99, 37; .loc 1 33 1\n@%p1 {NAME} {OPERANDS};")
    with pytest.raises(PartialWarp, match=r"Warp 1 of CTA .* 5 of its 32 threads .*whole warps") as caught:
        machine.launch(text, block=64)
    assert caught.value.finding.line == 33
    assert caught.value.finding.thread == (32, 0, 0)


def test_a_branch_that_takes_part_of_a_warp_around_a_product_is_a_fault(machine):
    text = machine.kernel(f"setp.lt.u32 %p1, %r99, 8; @%p1 bra END; {NAME} {OPERANDS}; END: bar.sync 0;")
    with pytest.raises((PartialWarp, Deadlock)):
        machine.launch(text, block=32)


def test_a_cta_without_whole_warps_cannot_multiply(machine):
    with pytest.raises(PartialWarp, match="4 of its 32 threads"):
        machine.launch(machine.kernel(f"{NAME} {OPERANDS};"), block=100)
