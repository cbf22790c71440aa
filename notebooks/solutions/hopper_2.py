import cutlass
import cutlass.cute as cute
import cutlass.memory
import cutlass.utils.hopper_helpers as sm90
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.tensor_utils import LayoutEnum


def halves(load, tiles, stage):
    """Return what TMA reads and where it writes, for the tiles of an operand."""
    whole = cute.make_layout(1)
    return cpasync.tma_partition(load, 0, whole, cute.group_modes(stage, 0, 2), cute.group_modes(tiles, 0, 2))


@cute.kernel
def product_kernel(
    load_a: cute.CopyAtom,
    a: cute.Tensor,
    load_b: cute.CopyAtom,
    b: cute.Tensor,
    out: cute.Tensor,
    mma: cute.TiledMma,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
):
    tidx, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    smem = cutlass.memory.SmemAllocator()
    full = smem.allocate_array(cutlass.Int64, 1)
    tile_a = smem.allocate_tensor(cutlass.Float16, layout_a.outer, 1024, swizzle=layout_a.inner)
    tile_b = smem.allocate_tensor(cutlass.Float16, layout_b.outer, 1024, swizzle=layout_b.inner)
    if tidx == 0:
        cute.arch.mbarrier_init(full, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    to_a, from_a = halves(load_a, cute.local_tile(a, (64, 64), (by, None)), tile_a)
    to_b, from_b = halves(load_b, cute.local_tile(b, (128, 64), (bx, None)), tile_b)
    part_a = mma.make_fragment_A(mma.get_slice(0).partition_A(tile_a))
    part_b = mma.make_fragment_B(mma.get_slice(0).partition_B(tile_b))
    my_out = mma.get_slice(tidx).partition_C(cute.local_tile(out, (64, 128), (by, bx)))
    sums = cute.make_rmem_tensor(my_out.shape, cutlass.Float32)
    sums.fill(0.0)
    mma.set(warpgroup.Field.ACCUMULATE, True)
    for k in cutlass.range(2, unroll=1):
        if cute.arch.make_warp_uniform(cute.arch.warp_idx()) == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full, 24576)
            cute.copy(load_a, from_a[None, k], to_a[None, 0], tma_bar_ptr=full)
            cute.copy(load_b, from_b[None, k], to_b[None, 0], tma_bar_ptr=full)
        cute.arch.mbarrier_wait(full, k % 2)
        warpgroup.fence()
        for piece in cutlass.range_constexpr(4):
            place = (None, None, piece, 0)
            cute.gemm(mma, sums, part_a[place], part_b[place], sums)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.arch.sync_threads()
    cute.autovec_copy(sums, my_out)


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    row = LayoutEnum.ROW_MAJOR
    major = row.sm90_mma_major_mode()
    mma = sm90.make_trivial_tiled_mma(
        cutlass.Float16, cutlass.Float16, major, major, cutlass.Float32, (1, 1, 1), tiler_mn=(64, 128)
    )
    layout_a = sm90.make_smem_layout_a(row, (64, 128, 64), cutlass.Float16, 1)
    layout_b = sm90.make_smem_layout_b(row, (64, 128, 64), cutlass.Float16, 1)
    copy = cpasync.CopyBulkTensorTileG2SOp()
    one = (None, None, 0)
    load_a, tma_a = cpasync.make_tiled_tma_atom(copy, a, cute.slice_(layout_a, one), (64, 64))
    load_b, tma_b = cpasync.make_tiled_tma_atom(copy, b, cute.slice_(layout_b, one), (128, 64))
    product_kernel(load_a, tma_a, load_b, tma_b, out, mma, layout_a, layout_b).launch(
        grid=(2, 2, 1), block=(128, 1, 1)
    )
