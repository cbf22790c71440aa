"""A transposition through shared memory whose rows are 32 words long (planted) or 33."""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

SIDE = 32
FAULT, CAUSE = "conflicting", "bank-conflicts"
CLEAN = "padded"


@cute.kernel
def transpose_in_one_bank(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    memory = cutlass.utils.SmemAllocator()
    tile = memory.allocate_tensor(cutlass.Float32, cute.make_layout((SIDE, SIDE), stride=(SIDE, 1)), 16)
    tile[t // SIDE, t % SIDE] = x[b * SIDE * SIDE + t]
    cute.arch.sync_threads()
    value = tile[t % SIDE, t // SIDE]  # planted: a column of 32-word rows is one bank
    y[b * SIDE * SIDE + t] = value + 1.0


@cute.kernel
def transpose_in_all_banks(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    memory = cutlass.utils.SmemAllocator()
    tile = memory.allocate_tensor(cutlass.Float32, cute.make_layout((SIDE, SIDE), stride=(SIDE + 1, 1)), 16)
    tile[t // SIDE, t % SIDE] = x[b * SIDE * SIDE + t]
    cute.arch.sync_threads()
    value = tile[t % SIDE, t // SIDE]
    y[b * SIDE * SIDE + t] = value + 1.0


@cute.jit
def conflicting(x: cute.Tensor, y: cute.Tensor):
    transpose_in_one_bank(x, y).launch(grid=(cute.size(x) // (SIDE * SIDE), 1, 1), block=(SIDE * SIDE, 1, 1))


@cute.jit
def padded(x: cute.Tensor, y: cute.Tensor):
    transpose_in_all_banks(x, y).launch(grid=(cute.size(x) // (SIDE * SIDE), 1, 1), block=(SIDE * SIDE, 1, 1))


def run(name, elements=65536):
    x, y = torch.rand(elements), torch.empty(elements)
    globals()[name](from_dlpack(x), from_dlpack(y))
    return {"flops": x.numel(), "least_bytes": 8 * x.numel()}
