import cutlass
import cutlass.cute as cute
import cutlass.memory


@cute.kernel
def transpose_kernel(x: cute.Tensor, out: cute.Tensor):
    tx, ty, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    square = cute.make_layout((32, 32), stride=(32, 1))
    layout = cute.make_composed_layout(cute.make_swizzle(5, 0, 5), 0, square)
    tile = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, layout, 1024)
    for step in cutlass.range_constexpr(4):
        row = ty + 8 * step
        tile[row, tx] = x[by * 32 + row, bx * 32 + tx]
    cute.arch.sync_threads()
    for step in cutlass.range_constexpr(4):
        row = ty + 8 * step
        out[bx * 32 + row, by * 32 + tx] = tile[tx, row]


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    transpose_kernel(x, out).launch(grid=(3, 2, 1), block=(32, 8, 1))
