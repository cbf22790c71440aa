import cutlass
import cutlass.cute as cute
import cutlass.memory
from cutlass.cute.nvgpu import warp


@cute.kernel
def product_kernel(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor, mma: cute.TiledMma):
    lane, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    rows = cute.make_layout((16, 32), stride=(32, 1))
    layout = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, rows)
    tile = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float16, layout, 1024)
    vectors = cute.local_tile(a, (16, 32), (by, 0))
    for step in cutlass.range_constexpr(2):
        place = (step * 8 + lane // 4, lane % 4)
        cute.autovec_copy(cute.local_tile(vectors, (1, 8), place), cute.local_tile(tile, (1, 8), place))
    cute.arch.sync_threads()
    of_lane = mma.get_slice(lane)
    my_b = of_lane.partition_B(cute.local_tile(b, (8, 32), (bx, 0)))
    my_out = of_lane.partition_C(cute.local_tile(out, (16, 8), (by, bx)))
    a_part = mma.make_fragment_A(of_lane.partition_A(tile))
    b_part = mma.make_fragment_B(my_b)
    sums = mma.make_fragment_C(my_out)
    sums.fill(0.0)
    read = cute.make_tiled_copy_A(cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cutlass.Float16), mma)
    cute.copy(read, read.get_slice(lane).partition_S(tile), read.get_slice(lane).retile(a_part))
    cute.autovec_copy(my_b, b_part)
    cute.gemm(mma, sums, a_part, b_part, sums)
    cute.autovec_copy(sums, my_out)


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16)))
    product_kernel(a, b, out, mma).launch(grid=(3, 2, 1), block=(32, 1, 1))
