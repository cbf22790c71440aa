"""Bytes of a register that instructions read, up to the last one."""

import numpy as np
import pytest

from cutegen_nb.simulator.checkers.findings import Findings
from cutegen_nb.simulator.machine.bytes_read import bytes_read
from cutegen_nb.simulator.ptx.faults import OutOfBounds
from cutegen_nb.simulator.ptx.parser import parse


@pytest.mark.parametrize(
    ("text", "bytes_of"),
    [
        ("ld.global.v2.b32 {%r1, %r2}, [%rd90]; add.u32 %r3, %r1, 1;", {"%r1": 16}),
        ("ld.global.b32 %r1, [%rd90]; mov.b32 {%rs1, _}, %r1;", {"%r1": 2}),
        ("ld.global.b32 %r1, [%rd90]; mov.b32 {_, %rs1}, %r1;", {"%r1": 4}),
        ("ld.global.b64 %rd1, [%rd90]; mov.b64 {%r1, _}, %rd1;", {"%rd1": 4}),
        ("ld.global.b32 %r1, [%rd90]; prmt.b32 %r2, %r1, 0, 0x7772;", {"%r1": 3}),
        ("ld.global.b32 %r1, [%rd90]; prmt.b32 %r2, 0, %r1, 0xCCC4;", {"%r1": 1}),
        ("ld.global.b32 %r1, [%rd90]; prmt.b32 %r2, %r1, 0, %r3;", {"%r1": 16}),
        ("ld.global.b32 %r1, [%rd90]; cvt.s8.s32 %rs1, %r1;", {"%r1": 1}),
        ("ld.global.b32 %r1, [%rd90]; cvt.rn.f32.s32 %r2, %r1;", {"%r1": 16}),
        ("ld.global.b32 %r1, [%rd90]; cvt.s8.s32 %rs1, %r1; st.global.b32 [%rd90], %r1;", {"%r1": 16}),
        ("ld.global.b32 %r1, [%rd90]; nanosleep.u32 %r1;", {"%r1": 16}),
    ],
)
def test_bytes_are_counted_to_the_last_one_that_is_read(machine, text, bytes_of):
    (kernel,) = parse(machine.kernel(text, parameters=1)).kernels.values()
    found = bytes_read(kernel.body)
    assert {name: found.get(name, 0) for name in ("%r1", "%rd1") if name in text.split("[")[0]} == bytes_of


FOUR_FOR_THREE = """ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd90];
    add.u32 %r5, %r2, %r3;"""
TWO_REGISTERS = """ld.global.v2.b32 {%r1, %r2}, [%rd90];
    mov.b32 {%rs1, %rs2}, %r1; mov.b32 {%rs3, _}, %r2;
    cvt.u32.u16 %r5, %rs2; cvt.u32.u16 %r6, %rs3; add.u32 %r5, %r5, %r6;"""
THREE_BYTES = """ld.global.b32 %r1, [%rd90];
    prmt.b32 %r2, %r1, 0, 0x7771; prmt.b32 %r3, %r1, 0, 0x7772; add.u32 %r5, %r2, %r3;"""


@pytest.mark.parametrize(
    ("text", "dtype"), [(FOUR_FOR_THREE, np.uint32), (TWO_REGISTERS, np.uint16), (THREE_BYTES, np.uint8)]
)
def test_a_load_past_the_end_is_allowed_where_no_instruction_reads_what_it_brings(machine, text, dtype):
    """The compiler joins neighbours so; the request is aligned, and a GPU reads the whole of it."""
    source, result = machine.align(np.array([5, 7, 9], dtype)), machine.align(np.zeros(32, np.uint32))
    body = f"{text} mad.wide.u32 %rd1, %r99, 4, %rd91; st.global.b32 [%rd1], %r5;"
    profile = machine.launch(machine.kernel(body, parameters=2), arrays=[source, result])
    assert set(result.tolist()) == {7 + 9}
    assert profile.counters.gmem_load_sectors == 1
    fewer = machine.align(source[:2])
    with pytest.raises(OutOfBounds, match="past its end"):
        machine.launch(machine.kernel(body, parameters=2), arrays=[fewer, result])


def test_a_gap_before_an_element_that_is_read_has_to_lie_in_the_tensor(machine):
    source, result = machine.align(np.zeros(3, np.uint32)), machine.align(np.zeros(1, np.uint32))
    body = "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd90]; st.global.b32 [%rd91], %r4;"
    with pytest.raises(OutOfBounds, match="4 bytes past its end"):
        machine.launch(machine.kernel(body, parameters=2), arrays=[source, result])


@pytest.mark.parametrize("space", ["shared", "local"])
def test_the_same_holds_at_the_end_of_shared_and_of_local_memory(machine, space):
    result = machine.align(np.zeros(1, np.uint32))
    body = f"""mov.u32 %r8, room; st.{space}.b32 [%r8], 5; st.{space}.b32 [%r8+8], 9;
    bar.sync 0; ld.{space}.v4.b32 {{%r1, %r2, %r3, %r4}}, [%r8]; add.u32 %r5, %r1, %r3;
    st.global.b32 [%rd90], %r5;"""
    room = f".{space} .align 16 .b8 room[12];"
    inside, before = (f"{room} {body}", "") if space == "local" else (body, room)
    text = machine.kernel(inside, parameters=1, before=before)
    machine.launch(text, block=1, arrays=[result])
    assert result.tolist() == [14]
    with pytest.raises(OutOfBounds):
        machine.launch(text.replace("%r5, %r1, %r3", "%r5, %r1, %r4"), block=1, arrays=[result])


def test_other_warps_may_write_the_element_that_is_loaded_beside_those_read(machine):
    """Three elements of each four are read, and the fourth is another thread's: no race."""
    body = """mov.u32 %r8, room; setp.eq.u32 %p1, %r99, 32;
    @%p1 st.shared.b32 [%r8+12], 1;
    setp.eq.u32 %p2, %r99, 0; @!%p2 bra END;
    st.shared.b32 [%r8], 5; ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r8];
    st.global.b32 [%rd90], %r1;
END:"""
    text = machine.kernel(body, parameters=1, before=".shared .align 16 .b8 room[16];")
    found = Findings()
    machine.launch(text, block=64, arrays=[machine.align(np.zeros(1, np.uint32))], findings=found)
    assert [item.message for item in found.all()] == []


@pytest.mark.long
@pytest.mark.parametrize("architecture", ["sm_80", "sm_100a"])
def test_the_compiler_s_joined_loads_of_a_small_tensor_are_no_finding(simulator_on, architecture):
    found = simulator_on(architecture).run("few_elements")
    assert all(found["right"].values()), found["right"]
    assert found["findings"] == []
