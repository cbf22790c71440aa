import cutlass
import cutlass.cute as cute


@cute.kernel
def double_kernel(x: cute.Tensor, out: cute.Tensor, tv: cute.Layout, size: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    x_tile = cute.zipped_divide(x, size)[(None, bidx)]
    out_tile = cute.zipped_divide(out, size)[(None, bidx)]
    mine = cute.composition(x_tile, tv)[tidx, None]
    cute.composition(out_tile, tv)[tidx, None].store(2.0 * mine.load())


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    threads = cute.make_layout((4, 8), stride=(8, 1))
    values = cute.make_layout((1, 4), stride=(4, 1))
    size, tv = cute.make_layout_tv(threads, values)
    double_kernel(x, out, tv, size).launch(grid=(48, 1, 1), block=(32, 1, 1))
