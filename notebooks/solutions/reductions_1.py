import cutlass
import cutlass.cute as cute


@cute.kernel
def max_kernel(x: cute.Tensor, out: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    value = x[bidx, tidx]
    for step in cutlass.range_constexpr(1, 4):
        value = cute.arch.fmax(value, x[bidx, step * 32 + tidx])
    for step in cutlass.range_constexpr(5):
        value = cute.arch.fmax(value, cute.arch.shuffle_sync_bfly(value, offset=16 >> step))
    if tidx == 0:
        out[bidx] = value


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    max_kernel(x, out).launch(grid=(16, 1, 1), block=(32, 1, 1))
