"""Sixty-four values kept by each thread, compiled for more CTAs than their registers allow (planted) or not."""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

KEPT = 64
THREADS = 64
FAULT, CAUSE = "narrow", "spills"
CLEAN = "roomy"


@cute.kernel
def hold(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    first = b * THREADS * KEPT + t
    kept = cute.make_rmem_tensor(cute.make_layout(KEPT), cutlass.Float32)
    for i in cutlass.range_constexpr(KEPT):
        kept[i] = x[first + THREADS * i]
    cute.arch.sync_threads()
    total = cutlass.Float32(0)
    for i in cutlass.range_constexpr(KEPT):
        for j in cutlass.range_constexpr(4):
            total = total + kept[i] * kept[(i * 7 + 3 * j) % KEPT]  # planted: all are alive
    for i in cutlass.range_constexpr(KEPT):
        y[first + THREADS * i] = kept[i] + total


@cute.jit
def roomy(x: cute.Tensor, y: cute.Tensor):
    hold(x, y).launch(grid=(cute.size(x) // (THREADS * KEPT), 1, 1), block=(THREADS, 1, 1))


@cute.jit
def narrow(x: cute.Tensor, y: cute.Tensor):
    hold(x, y).launch(
        grid=(cute.size(x) // (THREADS * KEPT), 1, 1), block=(THREADS, 1, 1), min_blocks_per_mp=32
    )


def run(name, elements=65536):
    x, y = torch.rand(elements), torch.empty(elements)
    globals()[name](from_dlpack(x), from_dlpack(y))
    return {"flops": 9 * x.numel(), "least_bytes": 8 * x.numel()}
