"""Each warp has a row and strides by the whole block: an eighth of the features is read."""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

THREADS = 256
WARPS = THREADS // 32
COMPILED = {}
ALIGN = 4


@cute.jit
def cta_sum(value: cutlass.Float32, shared: cute.Tensor, thread: cutlass.Int32) -> cutlass.Float32:
    """Sum over the CTA; every thread gets it."""
    for step in cutlass.range_constexpr(5):
        value += cute.arch.shuffle_sync_bfly(value, offset=1 << step)
    if thread % 32 == 0:
        shared[thread // 32] = value
    cute.arch.sync_threads()
    total = cutlass.Float32(0.0)
    for warp in cutlass.range_constexpr(WARPS):
        total += shared[warp]
    cute.arch.sync_threads()
    return total


@cute.kernel
def total_kernel(parts: cute.Tensor, y: cute.Tensor, count: cutlass.Constexpr, factor: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(WARPS))
    value = cutlass.Float32(0.0)
    for i in cutlass.range(thread, count, THREADS):
        value += parts[i]
    total = cta_sum(value, shared, thread)
    if thread == 0:
        y[0] = total * factor


@cute.kernel
def margin_kernel(
    a: cute.Tensor,
    p: cute.Tensor,
    n: cute.Tensor,
    parts: cute.Tensor,
    width: cutlass.Constexpr,
    margin: cutlass.Constexpr,
):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    lane, row = thread % 32, block * WARPS + thread // 32
    near, far = cutlass.Float32(0.0), cutlass.Float32(0.0)
    for column in cutlass.range(lane, width, THREADS, unroll=8):
        one = a[row, column]
        left, right = one - p[row, column] + 1.0e-6, one - n[row, column] + 1.0e-6
        near += left * left
        far += right * right
    for step in cutlass.range_constexpr(5):
        near += cute.arch.shuffle_sync_bfly(near, offset=1 << step)
        far += cute.arch.shuffle_sync_bfly(far, offset=1 << step)
    if lane == 0:
        parts[row] = cute.arch.fmax(cute.math.sqrt(near) - cute.math.sqrt(far) + margin, 0.0)


@cute.jit
def triplet(
    a: cute.Tensor,
    p: cute.Tensor,
    n: cute.Tensor,
    parts: cute.Tensor,
    y: cute.Tensor,
    width: cutlass.Constexpr,
    rows: cutlass.Constexpr,
    margin: cutlass.Constexpr,
):
    margin_kernel(a, p, n, parts, width, margin).launch(grid=(rows // WARPS, 1, 1), block=(THREADS, 1, 1))
    total_kernel(parts, y, rows, 1.0 / rows).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))


def launch(host, tensors, *sizes):
    """Compile `host` once for these shapes, then launch it."""
    given = [from_dlpack(item.detach(), assumed_align=ALIGN) for item in tensors]
    key = (host, *(tuple(item.shape) for item in tensors), *sizes)
    if key not in COMPILED:
        COMPILED[key] = cute.compile(host, *given, *sizes)
    COMPILED[key](*given)


class ModelNew(torch.nn.Module):
    def __init__(self, margin):
        super().__init__()
        self.margin = margin

    def forward(self, anchor, positive, negative):
        rows, width = anchor.shape
        y = torch.empty(1, dtype=anchor.dtype, device=anchor.device)
        parts = torch.empty(rows, dtype=anchor.dtype, device=anchor.device)
        launch(triplet, (anchor, positive, negative, parts, y), width, rows, self.margin)
        return y.reshape(())
