"""Right, parameter under a name of its own."""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

THREADS = 256


@cute.kernel
def scale_kernel(
    x: cute.Tensor, scale: cute.Tensor, y: cute.Tensor, count: cutlass.Int32, width: cutlass.Int32
):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    index = block * THREADS + thread
    if index < count:
        y[index] = x[index] * scale[index % width]


@cute.jit
def scaled(x: cute.Tensor, scale: cute.Tensor, y: cute.Tensor, count: cutlass.Int32, width: cutlass.Int32):
    blocks = (count + THREADS - 1) // THREADS
    scale_kernel(x, scale, y, count, width).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1))


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = torch.empty_like(x)
        tensors = (x.view(-1), self.weight.detach(), y.view(-1))
        flat = [from_dlpack(t).mark_layout_dynamic() for t in tensors]
        scaled(*flat, x.numel(), x.shape[-1])
        return y
