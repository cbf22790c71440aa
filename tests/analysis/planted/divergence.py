"""A long computation for half of the threads: for every other one (planted), or for every other warp."""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

THREADS = 128
STEPS, UNROLLED = 6, 8
ON_GPU_STEPS = 24
"""So many numbers that reading them takes longer than 48 steps."""
FAULT, CAUSE = "split", "divergence"
CLEAN = "together"


@cute.kernel
def by_thread(x: cute.Tensor, y: cute.Tensor, steps: cutlass.Int32):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    value = x[b * THREADS + t]
    if t % 2 == 0:
        for _ in cutlass.range(steps):
            for _ in cutlass.range_constexpr(UNROLLED):
                value = value * value + 0.25  # planted: half of each warp waits here
        y[b * THREADS + t] = value
    else:
        y[b * THREADS + t] = value + 1.0


@cute.kernel
def by_warp(x: cute.Tensor, y: cute.Tensor, steps: cutlass.Int32):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    value = x[b * THREADS + t]
    if (t // 32) % 2 == 0:
        for _ in cutlass.range(steps):
            for _ in cutlass.range_constexpr(UNROLLED):
                value = value * value + 0.25
        y[b * THREADS + t] = value
    else:
        y[b * THREADS + t] = value + 1.0


@cute.jit
def split(x: cute.Tensor, y: cute.Tensor, steps: cutlass.Int32):
    by_thread(x, y, steps).launch(grid=(cute.size(x) // THREADS, 1, 1), block=(THREADS, 1, 1))


@cute.jit
def together(x: cute.Tensor, y: cute.Tensor, steps: cutlass.Int32):
    by_warp(x, y, steps).launch(grid=(cute.size(x) // THREADS, 1, 1), block=(THREADS, 1, 1))


def run(name, elements=65536):
    x, y = torch.rand(elements), torch.empty(elements)
    steps = STEPS if elements <= 65536 else ON_GPU_STEPS
    globals()[name](from_dlpack(x), from_dlpack(y), steps)
    return {"flops": steps * UNROLLED * x.numel(), "least_bytes": 8 * x.numel()}
