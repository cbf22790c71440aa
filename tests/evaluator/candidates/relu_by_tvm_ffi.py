"""Right, and called through TVM-FFI on PyTorch's current stream."""

import cuda.bindings.driver as cuda
import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack, make_fake_stream

THREADS = 256


@cute.kernel
def relu_kernel(x: cute.Tensor, y: cute.Tensor, count: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    index = block * THREADS + thread
    if index < count:
        value = x[index]
        if value > 0.0:
            y[index] = value
        else:
            y[index] = 0.0


@cute.jit
def relu(x: cute.Tensor, y: cute.Tensor, count: cutlass.Int32, stream: cuda.CUstream):
    grid = ((count + THREADS - 1) // THREADS, 1, 1)
    relu_kernel(x, y, count).launch(grid=grid, block=(THREADS, 1, 1), stream=stream)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = None

    def forward(self, x):
        y = torch.empty_like(x)
        flat = [t.view(-1) for t in (x, y)]
        if self.compiled is None:
            like = [from_dlpack(t).mark_layout_dynamic() for t in flat]
            stream = make_fake_stream(use_tvm_ffi_env_stream=True)
            self.compiled = cute.compile(relu, *like, x.numel(), stream, options="--enable-tvm-ffi")
        self.compiled(*flat, x.numel())
        return y
