import cutlass
import cutlass.cute as cute


@cute.kernel
def max_kernel(x: cute.Tensor, out: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    piece, row, _ = cute.arch.block_idx()
    value = x[row, piece * 1024 + lane]
    for step in cutlass.range(1, 32):
        value = cute.arch.fmax(value, x[row, piece * 1024 + step * 32 + lane])
    value = cute.arch.warp_reduction_max(value)
    if lane == 0:
        out[row, piece] = value


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    max_kernel(x, out).launch(grid=(16, 2, 1), block=(32, 1, 1))
