import cutlass
import cutlass.cute as cute
import cutlass.memory


@cute.kernel
def squares_kernel(x: cute.Tensor, out: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    part = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(8), 16)
    value = x[bidx, tidx] * x[bidx, tidx]
    for step in cutlass.range_constexpr(5):
        value = value + cute.arch.shuffle_sync_bfly(value, offset=16 >> step)
    if tidx % 32 == 0:
        part[tidx // 32] = value
    cute.arch.sync_threads()
    if tidx == 0:
        total = part[0]
        for other in cutlass.range_constexpr(1, 8):
            total = total + part[other]
        out[bidx] = total


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    squares_kernel(x, out).launch(grid=(8, 1, 1), block=(256, 1, 1))
