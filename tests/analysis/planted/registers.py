"""A thread that keeps more values than the 255 registers it can have (planted), or a third of them.

The fault is in `hold` with 264 values a thread: the line that loads them is marked, and those that use them all
are marked too, because the compiler moves values to local memory where they are loaded and back where they
are used. Expected: ``spills``, of a kernel that has all 255 registers.
"""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

MANY, FEW = 264, 88
THREADS = 64
FAULT, CAUSE = "crowded", "spills"
CLEAN = "shared_out"


@cute.kernel
def hold(x: cute.Tensor, y: cute.Tensor, count: cutlass.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    first = b * THREADS * count + t
    mine = cute.make_tensor(x.iterator + first, cute.make_layout(count, stride=THREADS))
    made = cute.make_tensor(y.iterator + first, cute.make_layout(count, stride=THREADS))
    kept = cute.make_rmem_tensor(cute.make_layout(count), cutlass.Float32)
    for i in cutlass.range_constexpr(count):
        kept[i] = mine[i]  # planted: more values than registers
    cute.arch.sync_threads()
    total = cutlass.Float32(0)
    for i in cutlass.range_constexpr(count):
        total = total + kept[i] * kept[(i * 7 + 3) % count]  # planted: all are alive
    for i in cutlass.range_constexpr(count):
        made[i] = kept[i] + total  # planted: and needed once more


@cute.jit
def crowded(x: cute.Tensor, y: cute.Tensor):
    hold(x, y, MANY).launch(grid=(cute.size(x) // (THREADS * MANY), 1, 1), block=(THREADS, 1, 1))


@cute.jit
def shared_out(x: cute.Tensor, y: cute.Tensor):
    hold(x, y, FEW).launch(grid=(cute.size(x) // (THREADS * FEW), 1, 1), block=(THREADS, 1, 1))


def run(name, elements=65536):
    whole = max(1, elements // (THREADS * MANY)) * (THREADS * MANY)
    x, y = torch.rand(whole), torch.empty(whole)
    globals()[name](from_dlpack(x), from_dlpack(y))
    return {"flops": 3 * x.numel(), "least_bytes": 8 * x.numel()}
