import cutlass
import cutlass.cute as cute
import cutlass.memory
from cutlass.cute.nvgpu import cpasync


def halves(load, x, tile, by, bx):
    """Return what TMA reads and where it writes, for one tile."""
    piece = cute.local_tile(x, (32, 32), (by, bx))
    whole = cute.make_layout(1)
    return cpasync.tma_partition(load, 0, whole, cute.group_modes(tile, 0, 2), cute.group_modes(piece, 0, 2))


@cute.kernel
def sum_kernel(
    load_a: cute.CopyAtom, a: cute.Tensor, load_b: cute.CopyAtom, b: cute.Tensor, out: cute.Tensor
):
    tidx, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    smem = cutlass.memory.SmemAllocator()
    full = smem.allocate_array(cutlass.Int64, 1)
    rows = cute.make_layout((32, 32), stride=(32, 1))
    tile_a = smem.allocate_tensor(cutlass.Float32, rows, 128)
    tile_b = smem.allocate_tensor(cutlass.Float32, rows, 128)
    if tidx == 0:
        cute.arch.mbarrier_init(full, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    to_a, from_a = halves(load_a, a, tile_a, by, bx)
    to_b, from_b = halves(load_b, b, tile_b, by, bx)
    if tidx < 32:
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(full, 8192)
        cute.copy(load_a, from_a, to_a, tma_bar_ptr=full)
        cute.copy(load_b, from_b, to_b, tma_bar_ptr=full)
    cute.arch.mbarrier_wait(full, 0)
    mine = cute.local_tile(out, (32, 32), (by, bx))
    for step in cutlass.range_constexpr(8):
        row = step * 4 + tidx // 32
        mine[row, tidx % 32] = tile_a[row, tidx % 32] + tile_b[row, tidx % 32]


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    tile = cute.make_layout((32, 32), stride=(32, 1))
    load_a, tma_a = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, tile, (32, 32))
    load_b, tma_b = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), b, tile, (32, 32))
    sum_kernel(load_a, tma_a, load_b, tma_b, out).launch(grid=(3, 2, 1), block=(128, 1, 1))
