"""Compiles and launches cases: the same code on a GPU and on the simulator.

Many cases go into one kernel, each as a block of inline PTX that writes its own part of the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cutlass
import numpy as np
import torch
from cutlass import cute
from cutlass._mlir.dialects import llvm
from cutlass.cute.runtime import from_dlpack
from cutlass.cutlass_dsl import dsl_user_op

from suite.cases import BLOCK, SHARED_BYTES, THREADS, Case, block_of
from suite.samples import inputs_of

Array = Any

OPTIONS = cute.PtxasOptions("--fmad=false")
"""Products and sums stay two instructions, as in the PTX."""

blocks: dict[str, tuple[str, ...]] = {}
"""Inline PTX of a batch by its name. A kernel's name holds its constant arguments, so it gets the short one."""


@dsl_user_op
def inline(
    name: str, source: Any, target: Any, thread: Any, shared: Any, *, loc: Any = None, ip: Any = None
) -> None:
    operands = [
        source.toint(loc=loc, ip=ip).ir_value(loc=loc, ip=ip),
        target.toint(loc=loc, ip=ip).ir_value(loc=loc, ip=ip),
        cutlass.Int32(thread).ir_value(loc=loc, ip=ip),
        shared.toint(loc=loc, ip=ip).ir_value(loc=loc, ip=ip),
    ]
    for text in blocks[name]:
        llvm.inline_asm(
            None, operands, text, "l,l,r,r,~{memory}", has_side_effects=True, is_align_stack=False,
            asm_dialect=llvm.AsmDialect.AD_ATT,
        )  # fmt: skip


@cute.kernel
def cases_kernel(source: cute.Tensor, target: cute.Tensor, name: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    shared = cutlass.memory.SmemAllocator().allocate(SHARED_BYTES, 1024)
    inline(name, source.iterator, target.iterator, block * BLOCK + thread, shared)


@cute.jit
def launch_cases(source: cute.Tensor, target: cute.Tensor, name: cutlass.Constexpr):
    cases_kernel(source, target, name).launch(grid=(THREADS // BLOCK, 1, 1), block=(BLOCK, 1, 1))


def run(name: str, cases: Sequence[Case]) -> dict[str, Array]:
    """Compile a batch, launch it once, and return each case's output, registers by threads, as unsigned integers.

    Whatever the compiler, the driver or the simulator raises goes through.
    """
    source, target = packed_inputs(cases), np.zeros(sum(one.output.size_bytes for one in cases), np.uint8)
    texts, given, made = [], 0, 0
    for one in cases:
        texts.append(block_of(one, given, made))
        given, made = given + one.input_bytes, made + one.output.size_bytes
    blocks[name] = tuple(texts)
    x, y = torch.from_numpy(source).to("cuda"), torch.from_numpy(target).to("cuda")
    compiled = cute.compile[OPTIONS](
        launch_cases, from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16), name
    )
    compiled(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16))
    torch.cuda.synchronize()
    return unpacked(cases, y.cpu().numpy())


def packed_inputs(cases: Sequence[Case]) -> Array:
    """Inputs of a batch, one after the other."""
    parts = [values for one in cases for values in inputs_of(one)]
    return np.concatenate([part.view(np.uint8) for part in parts] or [np.zeros(16, np.uint8)])


def unpacked(cases: Sequence[Case], data: Array) -> dict[str, Array]:
    """Outputs of a batch by case."""
    found, at = {}, 0
    for one in cases:
        part = data[at : at + one.output.size_bytes]
        found[one.name] = part.view(f"u{one.output.width}").reshape(one.output.count, THREADS).copy()
        at += one.output.size_bytes
    return found
