import cutlass
import cutlass.cute as cute
import cutlass.memory
from cutlass.cute.nvgpu import cpasync


def ask(copy, a, b, ring_a, ring_b, k, stage, tidx, bx, by):
    """Ask for tile k of both operands: a vector of 4 numbers of each."""
    row, vector = tidx // 8, tidx % 8
    from_a = cute.local_tile(a, (1, 4), (by * 32 + row, k * 8 + vector))
    cute.copy(copy, from_a[0, None], cute.local_tile(ring_a[row, None, stage], (4,), (vector,)))
    from_b = cute.local_tile(b, (1, 4), (k * 32 + row, bx * 8 + vector))
    cute.copy(copy, from_b[0, None], cute.local_tile(ring_b[row, None, stage], (4,), (vector,)))


@cute.kernel
def product_kernel(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    smem = cutlass.memory.SmemAllocator()
    layout = cute.make_layout((32, 32, 3), stride=(32, 1, 1024))
    ring_a = smem.allocate_tensor(cutlass.Float32, layout, 16)
    ring_b = smem.allocate_tensor(cutlass.Float32, layout, 16)
    copy = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
    sums = cute.make_rmem_tensor(4, cutlass.Float32)
    sums.fill(0.0)
    column, first = tidx % 32, tidx // 32 * 4
    for k in cutlass.range_constexpr(2):
        ask(copy, a, b, ring_a, ring_b, k, k, tidx, bx, by)
        cute.arch.cp_async_commit_group()
    for k in cutlass.range(4):
        cute.arch.cp_async_wait_group(1)
        cute.arch.sync_threads()
        if k + 2 < 4:
            ask(copy, a, b, ring_a, ring_b, k + 2, (k + 2) % 3, tidx, bx, by)
        cute.arch.cp_async_commit_group()
        for j in cutlass.range(32):
            right = ring_b[j, column, k % 3]
            for i in cutlass.range_constexpr(4):
                sums[i] = sums[i] + ring_a[first + i, j, k % 3] * right
    for i in cutlass.range_constexpr(4):
        out[by * 32 + first + i, bx * 32 + column] = sums[i]


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    product_kernel(a, b, out).launch(grid=(2, 2, 1), block=(256, 1, 1))
