import cutlass.cute as cute


@cute.kernel
def double_kernel(x: cute.Tensor, out: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * 128 + tidx
    row = i // 96
    column = i % 96
    out[row, column] = 2.0 * x[row, column]


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    double_kernel(x, out).launch(grid=(48, 1, 1), block=(128, 1, 1))
