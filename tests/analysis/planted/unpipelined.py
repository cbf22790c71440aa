"""A CTA that waits for each tile before it computes on it (planted), or asks for it three tiles ahead.

The fault is in `one_at_a_time`: between the two barriers of a turn nothing happens but the load and the wait
for it, on the marked line, and no second CTA fits a multiprocessor to fill the gap. Expected:
``unpipelined-loads``. The twin has the next tiles in registers before it needs them.
"""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

THREADS = 256
TILES = 24
SUMMED = 40
AHEAD = 3
ROOM = 30 * 1024
"""Numbers of shared memory a CTA takes, so that one fits a multiprocessor and its waiting shows."""
FAULT, CAUSE = "waiting", "unpipelined-loads"
CLEAN = "ahead"


@cute.kernel
def one_at_a_time(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    memory = cutlass.utils.SmemAllocator()
    tile = memory.allocate_tensor(cutlass.Float32, cute.make_layout(ROOM), 16)
    total = cutlass.Float32(0)
    for i in cutlass.range_constexpr(TILES):
        tile[t] = x[(b * TILES + i) * THREADS + t]  # planted: each turn waits for its own load
        cute.arch.sync_threads()
        for j in cutlass.range_constexpr(SUMMED):
            total = total * 0.5 + tile[(t + j) % THREADS]
        cute.arch.sync_threads()
    y[b * THREADS + t] = total


@cute.kernel
def three_ahead(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    memory = cutlass.utils.SmemAllocator()
    tile = memory.allocate_tensor(cutlass.Float32, cute.make_layout(ROOM), 16)
    total = cutlass.Float32(0)
    coming = [x[(b * TILES + i) * THREADS + t] for i in range(AHEAD)]
    for i in cutlass.range_constexpr(TILES):
        tile[t] = coming[i]
        if cutlass.const_expr(i + AHEAD < TILES):
            coming.append(x[(b * TILES + i + AHEAD) * THREADS + t])
        cute.arch.sync_threads()
        for j in cutlass.range_constexpr(SUMMED):
            total = total * 0.5 + tile[(t + j) % THREADS]
        cute.arch.sync_threads()
    y[b * THREADS + t] = total


@cute.jit
def waiting(x: cute.Tensor, y: cute.Tensor):
    one_at_a_time(x, y).launch(grid=(cute.size(y) // THREADS, 1, 1), block=(THREADS, 1, 1))


@cute.jit
def ahead(x: cute.Tensor, y: cute.Tensor):
    three_ahead(x, y).launch(grid=(cute.size(y) // THREADS, 1, 1), block=(THREADS, 1, 1))


def run(name, elements=65536):
    y = torch.empty(max(1, elements // (TILES * THREADS)) * THREADS)
    x = torch.rand(TILES * y.numel())
    globals()[name](from_dlpack(x), from_dlpack(y))
    return {"flops": 2 * SUMMED * x.numel(), "least_bytes": 4 * (x.numel() + y.numel())}
