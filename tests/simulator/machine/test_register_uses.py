"""Registers that instructions read and write."""

import pytest

from cutegen_nb.simulator.machine.register_uses import private_registers, read_first, registers_of
from cutegen_nb.simulator.ptx.parser import parse


def instructions(machine, body):
    (kernel,) = parse(machine.kernel(body)).kernels.values()
    return [
        item for item in kernel.body if item.opcode not in {"ret", "mov"} or "%tid" not in str(item.operands)
    ]


@pytest.mark.parametrize(
    ("text", "read", "written"),
    [
        ("add.u32 %r1, %r2, %r3;", {"%r2", "%r3"}, {"%r1"}),
        ("st.global.b32 [%rd1], %r1;", {"%rd1", "%r1"}, set()),
        ("ld.global.v2.b32 {%r1, %r2}, [%rd1];", {"%rd1"}, {"%r1", "%r2"}),
        ("@%p1 mov.b32 %r1, %r2;", {"%r2", "%p1"}, {"%r1"}),
        ("cp.async.ca.shared.global [%r1], [%rd1], 4;", {"%r1", "%rd1"}, set()),
        ("barrier.cta.red.popc.u32 %r1, 0, %p1;", {"%p1"}, {"%r1"}),
    ],
)
def test_the_destination_is_written_and_the_rest_is_read(machine, text, read, written):
    assert registers_of(instructions(machine, text)[0]) == (read, written)


def test_a_register_used_in_one_segment_alone_is_private_unless_its_write_is_guarded(machine):
    body = instructions(
        machine,
        "add.u32 %r1, %r5, 1; add.u32 %r2, %r1, 1; @%p1 add.u32 %r3, %r1, 1; add.u32 %r4, %r2, %r3;",
    )[:4]
    private = private_registers(body, [(0, 3), (3, 4)])
    assert "%r1" in private
    assert not {"%r2", "%r3", "%r5"} & private


def test_a_register_that_is_read_before_it_is_written_is_named_with_its_reader(machine):
    body = instructions(machine, "add.u32 %r1, %r2, 1; add.u32 %r2, %r1, 1;")[:2]
    assert read_first(body) == {"%r2": body[0]}
