"""Parts that kernels are made of: vectors, shared memory, shuffles, loops, dynamic shared memory, clusters."""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def relu_kernel(gX: cute.Tensor, gY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    index = bidx * 64 + tidx
    x = gX[(None, index)].load()
    gY[(None, index)].store(cute.where(x > 0.0, x, cute.full_like(x, 0.0)))


@cute.jit
def relu(x: cute.Tensor, y: cute.Tensor):
    gX, gY = cute.zipped_divide(x, (4,)), cute.zipped_divide(y, (4,))
    relu_kernel(gX, gY).launch(grid=(cute.size(gX, mode=[1]) // 64, 1, 1), block=(64, 1, 1))


@cute.kernel
def row_sum_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    smem = cutlass.utils.SmemAllocator()
    partial = smem.allocate_tensor(cutlass.Float32, cute.make_layout(128), 16)
    total = cutlass.Float32(0.0)
    for column in range(tidx, x.shape[1], 128):
        total += x[row, column]
    partial[tidx] = total
    cute.arch.sync_threads()
    for step in cutlass.range_constexpr(7):
        stride = 64 >> step
        if tidx < stride:
            partial[tidx] = partial[tidx] + partial[tidx + stride]
        cute.arch.sync_threads()
    if tidx == 0:
        y[row] = partial[0]


@cute.jit
def row_sum(x: cute.Tensor, y: cute.Tensor):
    row_sum_kernel(x, y).launch(grid=(x.shape[0], 1, 1), block=(128, 1, 1))


@cute.kernel
def product_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    tx, ty, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    row, column = by * 8 + ty, bx * 16 + tx
    if row < c.shape[0] and column < c.shape[1]:
        total = cutlass.Float32(0.0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        c[row, column] = total


@cute.jit
def product(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    grid = (cute.ceil_div(c.shape[1], 16), cute.ceil_div(c.shape[0], 8), 1)
    product_kernel(a, b, c).launch(grid=grid, block=(16, 8, 1))


def check(simulation):
    x = torch.randn(1024, device="cuda")
    y = torch.empty_like(x)
    relu(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16))
    m = torch.randn(6, 300, device="cuda")
    sums = torch.empty(6, device="cuda")
    row_sum(from_dlpack(m).mark_layout_dynamic(), from_dlpack(sums))
    a, b = torch.randn(20, 24, device="cuda"), torch.randn(24, 30, device="cuda")
    c = torch.zeros(20, 30, device="cuda")
    product(from_dlpack(a), from_dlpack(b), from_dlpack(c))
    return {
        "relu": torch.equal(y, torch.relu(x)),
        "vectorised": "v4" in next(text for name, text in simulation.ptx.items() if "relu" in name),
        "row_sum": torch.allclose(sums, m.sum(1), atol=1e-4),
        "smem": [launch.dynamic_smem_bytes for launch in simulation.launches],
        "product": torch.allclose(c, a @ b, atol=1e-4),
    }
