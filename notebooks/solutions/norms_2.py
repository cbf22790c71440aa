import cutlass
import cutlass.cute as cute


@cute.kernel
def softmax_kernel(x: cute.Tensor, out: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    largest = -cutlass.Float32.inf
    total = cutlass.Float32(0.0)
    for i in cutlass.range(lane, x.shape[1], 32):
        value = x[row, i]
        new = cute.arch.fmax(largest, value)
        total = total * cute.math.exp(largest - new) + cute.math.exp(value - new)
        largest = new
    of_row = cute.arch.warp_reduction_max(largest)
    total = cute.arch.warp_reduction_sum(total * cute.math.exp(largest - of_row))
    for i in cutlass.range(lane, x.shape[1], 32):
        out[row, i] = cute.math.exp(x[row, i] - of_row) / total


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    softmax_kernel(x, out).launch(grid=(8, 1, 1), block=(32, 1, 1))
