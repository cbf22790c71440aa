"""ReLU and softmax in CuTe DSL, run by this package's simulator."""

from __future__ import annotations

import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack

THREADS = 256
VECTOR = 4
WARP = 32


@cute.kernel
def relu_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    gX = cute.zipped_divide(mX, (VECTOR,))
    gY = cute.zipped_divide(mY, (VECTOR,))
    vector = (None, bidx * THREADS + tidx)
    x = gX[vector].load()
    gY[vector].store(cute.where(x > 0.0, x, cute.full_like(x, 0.0)))


@cute.jit
def relu_host(mX: cute.Tensor, mY: cute.Tensor):
    relu_kernel(mX, mY).launch(grid=(cute.size(mX) // (THREADS * VECTOR), 1, 1), block=(THREADS, 1, 1))


@cute.kernel
def softmax_kernel(mX: cute.Tensor, mY: cute.Tensor, vectors: cutlass.Constexpr):
    """One CTA a row; the row stays in registers, `vectors` 128-bit vectors a thread."""
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    warps = THREADS // WARP
    smem = cutlass.utils.SmemAllocator()
    sMax = smem.allocate_tensor(cutlass.Float32, cute.make_layout(warps))
    sSum = smem.allocate_tensor(cutlass.Float32, cute.make_layout(warps))
    gX = cute.zipped_divide(mX[bidx, None], (VECTOR,))
    gY = cute.zipped_divide(mY[bidx, None], (VECTOR,))
    rX = cute.make_rmem_tensor((VECTOR, vectors), cutlass.Float32)
    for i in cutlass.range_constexpr(vectors):
        rX[None, i].store(gX[(None, i * THREADS + tidx)].load())
    x = rX.load()
    high = cute.arch.warp_reduction_max(x.reduce(cute.ReductionOp.MAX, -cutlass.Float32.inf, 0))
    sMax[tidx // WARP] = high
    cute.arch.barrier()
    for w in cutlass.range_constexpr(warps):
        high = cutlass.max(high, sMax[w])
    e = cute.math.exp(x - high, fastmath=True)
    total = cute.arch.warp_reduction_sum(e.reduce(cute.ReductionOp.ADD, cutlass.Float32(0.0), 0))
    sSum[tidx // WARP] = total
    cute.arch.barrier()
    total = cutlass.Float32(0.0)
    for w in cutlass.range_constexpr(warps):
        total = total + sSum[w]
    rX.store(e / total)
    for i in cutlass.range_constexpr(vectors):
        gY[(None, i * THREADS + tidx)].store(rX[None, i].load())


@cute.jit
def softmax_host(mX: cute.Tensor, mY: cute.Tensor):
    vectors = mX.shape[1] // (THREADS * VECTOR)
    softmax_kernel(mX, mY, vectors).launch(grid=(mX.shape[0], 1, 1), block=(THREADS, 1, 1))


_compiled = {}


def _run(host, x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    mX, mY = from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16)
    if host not in _compiled:
        _compiled[host] = cute.compile(host, mX, mY)
    _compiled[host](mX, mY)
    return y


def relu(x: torch.Tensor) -> torch.Tensor:
    """Element-wise, one 128-bit vector a thread; needs a multiple of 1,024 elements."""
    return _run(relu_host, x)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """One CTA a row; needs a multiple of 1,024 columns."""
    return _run(softmax_host, x)
