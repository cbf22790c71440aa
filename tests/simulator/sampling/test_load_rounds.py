"""Rounds of loads: loads under way together count once, a chain of loads counts its length."""

import pytest

from cutegen_nb.simulator.machine.program import program_of
from cutegen_nb.simulator.ptx.parser import parse
from cutegen_nb.simulator.sampling.load_rounds import rounds_by_segment

BODIES = {
    "no load": ("add.f32 %f1, %f1, %f1;", 0),
    "one load": ("ld.global.f32 %f1, [%rd1];", 1),
    "four loads together": (
        (
            "ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd1+4]; ld.global.f32 %f3, [%rd1+8];"
            "ld.global.f32 %f4, [%rd1+12]; add.f32 %f1, %f1, %f2;"
        ),
        1,
    ),
    "a chain of three": (
        "ld.global.u64 %rd2, [%rd1]; ld.global.u64 %rd3, [%rd2]; add.u64 %rd4, %rd3, %rd1; ld.global.f32 %f1, [%rd4];",
        3,
    ),
    "shared memory": ("ld.shared.f32 %f1, [tile]; ld.shared.f32 %f2, [tile];", 0),
    "loads apart by a branch": (
        "ld.global.f32 %f1, [%rd1]; @%p1 bra NEXT; ld.global.f32 %f2, [%rd1+4]; NEXT: add.f32 %f1, %f1, %f2;",
        2,
    ),
    "copies and their wait": (
        (
            "cp.async.ca.shared.global [tile], [%rd1], 4; cp.async.ca.shared.global [tile+4], [%rd1+4], 4;"
            "cp.async.commit_group; cp.async.wait_group 0;"
        ),
        1,
    ),
    "a load behind a store": (
        "ld.global.f32 %f1, [%rd1]; st.global.f32 [%rd2], %f1; ld.global.f32 %f2, [%rd1+4]; ld.global.f32 %f3, [%rd1+8];",
        2,
    ),
    "a load that no store changes": (
        "ld.global.f32 %f1, [%rd1]; st.global.f32 [%rd2], %f1; ld.global.nc.f32 %f2, [%rd1+4];",
        1,
    ),
    "an atomic": ("atom.global.add.u32 %r1, [%rd1], 1;", 1),
}
HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{
.reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .pred %p<3>;
.shared .align 16 .b8 tile[1024];
"""


@pytest.mark.parametrize("name", BODIES)
def test_rounds_of_a_body(name):
    body, expected = BODIES[name]
    module = parse(f"{HEAD}{body}\nret;\n}}\n")
    program = program_of(module, module.kernels["k"])
    assert sum(rounds_by_segment(program)) == expected
