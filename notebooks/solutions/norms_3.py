import cutlass
import cutlass.cute as cute


@cute.kernel
def norm_kernel(x: cute.Tensor, out: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    count = cutlass.Float32(0.0)
    mean = cutlass.Float32(0.0)
    squares = cutlass.Float32(0.0)
    for i in cutlass.range(lane, x.shape[1], 32):
        value = x[row, i]
        count = count + 1.0
        difference = value - mean
        mean = mean + difference / count
        squares = squares + difference * (value - mean)
    for step in cutlass.range_constexpr(5):
        other_mean = cute.arch.shuffle_sync_bfly(mean, offset=16 >> step)
        other_squares = cute.arch.shuffle_sync_bfly(squares, offset=16 >> step)
        difference = other_mean - mean
        mean = (mean + other_mean) / 2.0
        squares = squares + other_squares + difference * difference * count / 2.0
        count = count * 2.0
    variance = squares / x.shape[1]
    for i in cutlass.range(lane, x.shape[1], 32):
        out[row, i] = (x[row, i] - mean) * cute.math.rsqrt(variance + 0.00001)


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    norm_kernel(x, out).launch(grid=(8, 1, 1), block=(32, 1, 1))
