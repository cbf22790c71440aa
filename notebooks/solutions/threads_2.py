import cutlass
import cutlass.cute as cute


@cute.kernel
def square_kernel(x: cute.Tensor, out: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    # From one step to the next all 512 threads move on together.
    for i in cutlass.range(bidx * 128 + tidx, x.shape[0], 512):
        out[i] = x[i] * x[i]


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    square_kernel(x, out).launch(grid=(4, 1, 1), block=(128, 1, 1))
