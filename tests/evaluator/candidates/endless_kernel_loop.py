"""A kernel whose loop never ends: it waits for a value that nobody writes."""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def relu_kernel(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    if i < x.shape[0]:
        y[i] = cutlass.Float32(0.0)
        seen = y[i]
        while seen < 1.0:
            y[i] = seen * 0.5
            seen = y[(i + 1) % x.shape[0]]


@cute.jit
def relu(x: cute.Tensor, y: cute.Tensor):
    relu_kernel(x, y).launch(grid=(cute.ceil_div(x.shape[0], 128), 1, 1), block=(128, 1, 1))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu(from_dlpack(x), from_dlpack(y))
        return y
