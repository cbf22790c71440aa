import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import warp


@cute.kernel
def product_kernel(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor, mma: cute.TiledMma):
    lane, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    of_lane = mma.get_slice(lane)
    my_a = of_lane.partition_A(cute.local_tile(a, (16, 64), (by, 0)))
    a_part = mma.make_fragment_A(my_a)
    cute.autovec_copy(my_a, a_part)
    for half in cutlass.range_constexpr(2):
        my_b = of_lane.partition_B(cute.local_tile(b, (8, 64), (bx * 2 + half, 0)))
        my_out = of_lane.partition_C(cute.local_tile(out, (16, 8), (by, bx * 2 + half)))
        b_part = mma.make_fragment_B(my_b)
        sums = mma.make_fragment_C(my_out)
        sums.fill(0.0)
        cute.autovec_copy(my_b, b_part)
        cute.gemm(mma, sums, a_part, b_part, sums)
        cute.autovec_copy(sums, my_out)


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16)))
    product_kernel(a, b, out, mma).launch(grid=(4, 2, 1), block=(32, 1, 1))
