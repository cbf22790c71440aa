"""ReLU, softmax and a half-precision product in CuTe DSL, run by this package's simulator."""

from __future__ import annotations

import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.nvgpu import cpasync, warp
from cutlass.cute.runtime import from_dlpack

THREADS = 256
VECTOR = 4
WARP = 32
TILE_M, TILE_N, TILE_K, STAGES = 64, 64, 32, 3
PRODUCT_THREADS = 128


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


@cute.kernel
def product_kernel(  # noqa: PLR0913, PLR0917 - tensors and what the host made of them
    mA: cute.Tensor,
    mB: cute.Tensor,
    mC: cute.Tensor,
    tiled_mma: cute.TiledMma,
    sA_layout: cute.ComposedLayout,
    sB_layout: cute.ComposedLayout,
    copy_A: cute.TiledCopy,
    copy_B: cute.TiledCopy,
):
    """One tile of C a CTA; mA (M, K) with K contiguous, mB (N, K) with N contiguous.

    Three stages of shared memory filled by cp.async, read by ldmatrix, multiplied by mma.sync m16n8k16.
    """
    tidx, _, _ = cute.arch.thread_idx()
    bidx, bidy, _ = cute.arch.block_idx()
    gA = cute.local_tile(mA, (TILE_M, TILE_K), (bidx, None))
    gB = cute.local_tile(mB, (TILE_N, TILE_K), (bidy, None))
    gC = cute.local_tile(mC, (TILE_M, TILE_N), (bidx, bidy))
    smem = cutlass.utils.SmemAllocator()
    sA = smem.allocate_tensor(cutlass.Float16, sA_layout, 16)
    sB = smem.allocate_tensor(cutlass.Float16, sB_layout, 16)
    thread_A, thread_B = copy_A.get_slice(tidx), copy_B.get_slice(tidx)
    tAgA, tAsA = thread_A.partition_S(gA), thread_A.partition_D(sA)
    tBgB, tBsB = thread_B.partition_S(gB), thread_B.partition_D(sB)
    thread_mma = tiled_mma.get_slice(tidx)
    tCgC = thread_mma.partition_C(gC)
    rA = tiled_mma.make_fragment_A(thread_mma.partition_A(sA[None, None, 0]))
    rB = tiled_mma.make_fragment_B(thread_mma.partition_B(sB[None, None, 0]))
    rC = tiled_mma.make_fragment_C(tCgC)
    rC.fill(0.0)
    atom_A = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cutlass.Float16)
    atom_B = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 4), cutlass.Float16)
    load_A = cute.make_tiled_copy_A(atom_A, tiled_mma)
    load_B = cute.make_tiled_copy_B(atom_B, tiled_mma)
    tXsA, tXrA = load_A.get_slice(tidx).partition_S(sA), load_A.get_slice(tidx).retile(rA)
    tXsB, tXrB = load_B.get_slice(tidx).partition_S(sB), load_B.get_slice(tidx).retile(rB)
    steps = cute.size(gA, mode=[2])
    for stage in cutlass.range_constexpr(STAGES - 1):
        cute.copy(copy_A, tAgA[None, None, None, stage], tAsA[None, None, None, stage])
        cute.copy(copy_B, tBgB[None, None, None, stage], tBsB[None, None, None, stage])
        cute.arch.cp_async_commit_group()
    for step in range(steps):
        cute.arch.cp_async_wait_group(STAGES - 2)
        cute.arch.barrier()
        ahead = step + STAGES - 1
        if ahead < steps:
            cute.copy(copy_A, tAgA[None, None, None, ahead], tAsA[None, None, None, ahead % STAGES])
            cute.copy(copy_B, tBgB[None, None, None, ahead], tBsB[None, None, None, ahead % STAGES])
        cute.arch.cp_async_commit_group()
        now = step % STAGES
        for k in cutlass.range_constexpr(cute.size(rA, mode=[2])):
            cute.copy(load_A, tXsA[None, None, k, now], tXrA[None, None, k])
            cute.copy(load_B, tXsB[None, None, k, now], tXrB[None, None, k])
            cute.gemm(tiled_mma, rC, rA[None, None, k], rB[None, None, k], rC)
    rD = cute.make_fragment_like(rC, cutlass.Float16)
    rD.store(rC.load().to(cutlass.Float16))
    cute.autovec_copy(rD, tCgC)


@cute.jit
def product_host(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
    operation = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    tiled_mma = cute.make_tiled_mma(operation, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
    a_atom = cute.make_composed_layout(
        cute.make_swizzle(2, 3, 3), 0, cute.make_layout((8, TILE_K), stride=(TILE_K, 1))
    )
    b_atom = cute.make_composed_layout(
        cute.make_swizzle(3, 3, 3), 0, cute.make_layout((TILE_N, 8), stride=(1, TILE_N))
    )
    sA_layout = cute.tile_to_shape(a_atom, (TILE_M, TILE_K, STAGES), (0, 1, 2))
    sB_layout = cute.tile_to_shape(b_atom, (TILE_N, TILE_K, STAGES), (0, 1, 2))
    atom = cute.make_copy_atom(
        cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL), cutlass.Float16, num_bits_per_copy=128
    )
    copy_A = cute.make_tiled_copy_tv(atom, cute.make_layout((32, 4), stride=(4, 1)), cute.make_layout((1, 8)))
    copy_B = cute.make_tiled_copy_tv(atom, cute.make_layout((8, 16), stride=(1, 8)), cute.make_layout((8, 1)))
    product_kernel(mA, mB, mC, tiled_mma, sA_layout, sB_layout, copy_A, copy_B).launch(
        grid=(mC.shape[0] // TILE_M, mC.shape[1] // TILE_N, 1), block=(PRODUCT_THREADS, 1, 1)
    )


_compiled = {}


def _run(host, *tensors: torch.Tensor) -> None:
    given = [from_dlpack(one, assumed_align=16) for one in tensors]
    if host not in _compiled:
        _compiled[host] = cute.compile(host, *given)
    _compiled[host](*given)


def relu(x: torch.Tensor) -> torch.Tensor:
    """Element-wise, one 128-bit vector a thread; needs a multiple of 1,024 elements."""
    y = torch.empty_like(x)
    _run(relu_host, x, y)
    return y


def softmax(x: torch.Tensor) -> torch.Tensor:
    """One CTA a row; needs a multiple of 1,024 columns."""
    y = torch.empty_like(x)
    _run(softmax_host, x, y)
    return y


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a @ b`` in float16 with float32 sums; sides are multiples of 64, and K one of 32, at least 64."""
    c = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    _run(product_host, a, b.t(), c)
    return c
