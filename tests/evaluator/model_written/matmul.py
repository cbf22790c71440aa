"""C = A @ B with 32x32 shared-memory tiles, one output an iteration of 4 per thread."""
import torch
import torch.nn as nn
import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack

TILE = 32
ROWS = 8  # threads in y; each computes TILE // ROWS outputs


@cute.kernel
def matmul_kernel(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
    tx, ty, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    M, K = mA.shape
    N = mB.shape[1]

    smem = cutlass.utils.SmemAllocator()
    sA = smem.allocate_tensor(cutlass.Float32, cute.make_layout((TILE, TILE), stride=(TILE + 1, 1)))
    sB = smem.allocate_tensor(cutlass.Float32, cute.make_layout((TILE, TILE), stride=(TILE, 1)))

    acc = cute.make_rmem_tensor((TILE // ROWS,), cutlass.Float32)
    acc.fill(0.0)
    col = bx * TILE + tx

    for kt in cutlass.range(cute.ceil_div(K, TILE)):
        for i in cutlass.range_constexpr(TILE // ROWS):
            r = ty + i * ROWS
            ar = by * TILE + r
            ac = kt * TILE + tx
            a = cutlass.Float32(0.0)
            if ar < M and ac < K:
                a = mA[ar, ac]
            sA[r, tx] = a
            br = kt * TILE + r
            b = cutlass.Float32(0.0)
            if br < K and col < N:
                b = mB[br, col]
            sB[r, tx] = b
        cute.arch.sync_threads()
        for k in cutlass.range_constexpr(TILE):
            b = sB[k, tx]
            for i in cutlass.range_constexpr(TILE // ROWS):
                acc[i] = acc[i] + sA[ty + i * ROWS, k] * b
        cute.arch.sync_threads()

    for i in cutlass.range_constexpr(TILE // ROWS):
        row = by * TILE + ty + i * ROWS
        if row < M and col < N:
            mC[row, col] = acc[i]


@cute.jit
def matmul_host(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
    M = mC.shape[0]
    N = mC.shape[1]
    matmul_kernel(mA, mB, mC).launch(
        grid=(cute.ceil_div(N, TILE), cute.ceil_div(M, TILE), 1), block=(TILE, ROWS, 1)
    )


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fn = None
        self.wrappers = {}

    def _wrap(self, t):
        # keep the DLPack wrapper of a tensor we have already seen
        key = (t.data_ptr(), tuple(t.shape))
        if key not in self.wrappers:
            self.wrappers[key] = from_dlpack(t, assumed_align=4).mark_layout_dynamic(leading_dim=1)
        return self.wrappers[key]

    def forward(self, A, B):
        A = A.contiguous()
        B = B.contiguous()
        C = torch.empty((A.shape[0], B.shape[1]), device=A.device, dtype=A.dtype)
        mC = from_dlpack(C, assumed_align=4).mark_layout_dynamic(leading_dim=1)
        if self.fn is None:
            self.fn = cute.compile(matmul_host, self._wrap(A), self._wrap(B), mC)
        self.fn(self._wrap(A), self._wrap(B), mC)
        return C
