import cutlass
import cutlass.cute as cute


@cute.kernel
def product_kernel(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    tx, ty, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    column = bx * 32 + tx
    row = (by * 8 + ty) * 4
    sums = cute.make_rmem_tensor(4, cutlass.Float32)
    sums.fill(0.0)
    for k in cutlass.range(64):
        right = b[k, column]
        for j in cutlass.range_constexpr(4):
            sums[j] = sums[j] + a[row + j, k] * right
    for j in cutlass.range_constexpr(4):
        out[row + j, column] = sums[j]


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    product_kernel(a, b, out).launch(grid=(2, 2, 1), block=(32, 8, 1))
