"""Every instruction belongs to one pipe."""

import pytest

from cutegen_nb.simulator.counters.pipes import PIPES, pipe_of
from cutegen_nb.simulator.machine.program import CONTROL
from cutegen_nb.simulator.ops.lowering import REGISTRY
from cutegen_nb.simulator.ptx.parser import parse

PIPE_EXAMPLES = {
    "add.rn.f32 %f1, %f2, %f3": "fp32",
    "fma.rn.ftz.f32 %f1, %f2, %f3, %f3": "fp32",
    "fma.rn.f32x2 %rd1, %rd2, %rd3, %rd4": "fp32",
    "mul.rn.f64 %fd1, %fd2, %fd3": "fp64",
    "fma.rn.f16x2 %r1, %r2, %r3, %r4": "fp16",
    "add.rn.bf16 %rs1, %rs2, %rs3": "fp16",
    "add.s32 %r1, %r2, %r3": "alu",
    "lop3.b32 %r1, %r2, %r3, %r4, 0x96": "alu",
    "setp.lt.f32 %p1, %f1, %f2": "alu",
    "max.f32 %f1, %f2, %f3": "alu",
    "selp.b32 %r1, %r2, %r3, %p1": "alu",
    "mad.lo.s32 %r1, %r2, %r3, %r4": "integer-multiply",
    "mul.wide.u32 %rd1, %r2, %r3": "integer-multiply",
    "div.u32 %r1, %r2, %r3": "integer-divide",
    "div.rn.f32 %f1, %f2, %f3": "special",
    "ex2.approx.ftz.f32 %f1, %f2": "special",
    "rcp.approx.ftz.f64 %fd1, %fd2": "special",
    "sqrt.rn.f64 %fd1, %fd2": "fp64",
    "cvt.rn.f16.f32 %rs1, %f1": "convert",
    "ld.global.nc.L1::no_allocate.b32 %r1, [%rd1]": "load.global",
    "ld.param.b32 %r1, [p0]": "load.param",
    "st.shared.b32 [%r1], %r2": "store.shared",
    "ld.b32 %r1, [%rd1]": "load.generic",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2]": "load.shared",
    "atom.global.add.u32 %r1, [%rd1], %r2": "atomic",
    "red.shared.add.u32 [%r1], %r2": "atomic",
    "cp.async.cg.shared.global [%r1], [%rd1], 16": "async-copy",
    "cp.async.wait_group 0": "barrier",
    "bar.sync 0": "barrier",
    "bra.uni DONE": "control",
    "shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1": "warp",
    "mov.b32 %r1, %r2": "move",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r1,%r2,%r3,%r4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, "
    "{%r1,%r2,%r3,%r4}": "tensor.bf16",
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1,%r2}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%r1,%r2}":
    "tensor.f16",
    "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.s8.s32 {%r1,%r2,%r3,%r4}, {%r1,%r2,%r3,%r4}, "
    "{%r5,%r6}, {%r1,%r2,%r3,%r4}": "tensor.s8",
}  # fmt: skip


@pytest.mark.parametrize("text", PIPE_EXAMPLES)
def test_an_instruction_belongs_to_the_pipe_that_ptx_names(machine, text):
    body = f".reg .f32 %f<9>; .reg .f64 %fd<9>; {text};\nDONE:\n"
    kernel = next(iter(parse(machine.kernel(body, parameters=1)).kernels.values()))
    (found,) = (one for one in kernel.body if one.name == text.split(maxsplit=1)[0])

    assert pipe_of(found) == PIPE_EXAMPLES[text]


def test_every_supported_opcode_has_a_pipe():
    assert (REGISTRY.keys() | CONTROL.keys()) - PIPES.keys() == set()
