"""RMSNorm over the channel dimension of (N, C, H, W), one thread a pixel, coalesced along W."""
import torch
import torch.nn as nn
import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def rms_kernel(mX: cute.Tensor, mY: cute.Tensor, features: cutlass.Constexpr, pixels: cutlass.Int32, eps: cutlass.Float32):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, bidy, _ = cute.arch.block_idx()
    bdim, _, _ = cute.arch.block_dim()
    p = bidx * bdim + tidx
    if p < pixels:
        acc = cutlass.Float32(0.0)
        for c in cutlass.range(features, unroll=4):
            v = mX[bidy, c, p].to(cutlass.Float32)
            acc += v * v
        scale = cute.rsqrt(acc / features + eps)
        for c in cutlass.range(features, unroll=4):
            mY[bidy, c, p] = (mX[bidy, c, p].to(cutlass.Float32) * scale).to(mY.element_type)


@cute.jit
def rms_host(mX: cute.Tensor, mY: cute.Tensor, features: cutlass.Constexpr, eps: cutlass.Float32):
    n = mX.shape[0]
    pixels = mX.shape[2]
    threads = 256
    rms_kernel(mX, mY, features, pixels, eps).launch(
        grid=(cute.ceil_div(pixels, threads), n, 1), block=(threads, 1, 1)
    )


class ModelNew(nn.Module):
    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self._cache = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not x.is_cuda:
            x = x.cuda()
        x = x.contiguous()
        n, c = x.shape[0], x.shape[1]
        out = torch.empty(x.shape, dtype=x.dtype, device="cuda")
        x3 = x.view(n, c, -1)
        o3 = out.view(n, c, -1)
        mX = from_dlpack(x3.detach(), assumed_align=16).mark_layout_dynamic()
        mY = from_dlpack(o3.detach(), assumed_align=16).mark_layout_dynamic()
        key = (x.dtype, c)
        fn = self._cache.get(key)
        if fn is None:
            fn = cute.compile(rms_host, mX, mY, c, cutlass.Float32(self.eps))
            self._cache[key] = fn
        fn(mX, mY, cutlass.Float32(self.eps))
        torch.cuda.synchronize()
        return out
