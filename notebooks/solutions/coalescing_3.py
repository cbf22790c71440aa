import cutlass.cute as cute


@cute.kernel
def axpy_kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * 128 + tidx
    out[(None, i)].store(0.5 * x[(None, i)].load() + y[(None, i)].load())


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor):
    x4 = cute.zipped_divide(x, (4,))
    y4 = cute.zipped_divide(y, (4,))
    out4 = cute.zipped_divide(out, (4,))
    # 8,192 numbers are 2,048 vectors of 4: 16 blocks of 128 threads.
    axpy_kernel(x4, y4, out4).launch(grid=(16, 1, 1), block=(128, 1, 1))
