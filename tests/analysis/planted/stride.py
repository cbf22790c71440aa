"""A tile of 32 by 32 numbers a CTA, read down its columns (planted) or along its rows."""

import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

SIDE = 32
FAULT, CAUSE = "strided", "uncoalesced"
CLEAN = "straight"


@cute.kernel
def read_down(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    first = b * SIDE * SIDE
    value = x[first + (t % SIDE) * SIDE + t // SIDE]  # planted: neighbours are 32 numbers apart
    y[first + t] = value * 2.0 + 1.0


@cute.kernel
def read_along(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    first = b * SIDE * SIDE
    value = x[first + t]
    y[first + t] = value * 2.0 + 1.0


@cute.jit
def strided(x: cute.Tensor, y: cute.Tensor):
    read_down(x, y).launch(grid=(cute.size(x) // (SIDE * SIDE), 1, 1), block=(SIDE * SIDE, 1, 1))


@cute.jit
def straight(x: cute.Tensor, y: cute.Tensor):
    read_along(x, y).launch(grid=(cute.size(x) // (SIDE * SIDE), 1, 1), block=(SIDE * SIDE, 1, 1))


def run(name, elements=65536):
    x, y = torch.rand(elements), torch.empty(elements)
    globals()[name](from_dlpack(x), from_dlpack(y))
    return {"flops": 2 * x.numel(), "least_bytes": 8 * x.numel()}
