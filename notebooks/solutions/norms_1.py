import cutlass.cute as cute


@cute.kernel
def logsumexp_kernel(x: cute.Tensor, out: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    value = x[row, lane]
    largest = cute.arch.warp_reduction_max(value)
    total = cute.arch.warp_reduction_sum(cute.math.exp(value - largest))
    if lane == 0:
        out[row] = largest + cute.math.log(total)


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    logsumexp_kernel(x, out).launch(grid=(16, 1, 1), block=(32, 1, 1))
