import cutlass
import cutlass.cute as cute
import cutlass.memory
import cutlass.pipeline as pipeline
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
    barriers = smem.allocate_array(cutlass.Int64, 6)
    tile_a = smem.allocate_tensor(cutlass.Float16, layout_a.outer, 1024, swizzle=layout_a.inner)
    tile_b = smem.allocate_tensor(cutlass.Float16, layout_b.outer, 1024, swizzle=layout_b.inner)
    stages = pipeline.PipelineTmaAsync.create(
        barrier_storage=barriers,
        num_stages=3,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 4),
        tx_count=16384,
        cta_layout_vmnk=cute.make_layout((1, 1, 1, 1)),
    )
    to_a, from_a = halves(load_a, cute.local_tile(a, (64, 64), (by, None)), tile_a)
    to_b, from_b = halves(load_b, cute.local_tile(b, (64, 64), (bx, None)), tile_b)
    if tidx >= 128:
        writing = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 3)
        for k in cutlass.range(4, unroll=1):
            stages.producer_acquire(writing)
            full = stages.producer_get_barrier(writing)
            cute.copy(load_a, from_a[None, k], to_a[None, writing.index], tma_bar_ptr=full)
            cute.copy(load_b, from_b[None, k], to_b[None, writing.index], tma_bar_ptr=full)
            stages.producer_commit(writing)
            writing.advance()
        stages.producer_tail(writing)
    else:
        part_a = mma.make_fragment_A(mma.get_slice(0).partition_A(tile_a))
        part_b = mma.make_fragment_B(mma.get_slice(0).partition_B(tile_b))
        my_out = mma.get_slice(tidx).partition_C(cute.local_tile(out, (64, 64), (by, bx)))
        sums = cute.make_rmem_tensor(my_out.shape, cutlass.Float32)
        sums.fill(0.0)
        mma.set(warpgroup.Field.ACCUMULATE, True)
        reading = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 3)
        for _ in cutlass.range(4, unroll=1):
            stages.consumer_wait(reading)
            warpgroup.fence()
            for piece in cutlass.range_constexpr(4):
                place = (None, None, piece, reading.index)
                cute.gemm(mma, sums, part_a[place], part_b[place], sums)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            stages.consumer_release(reading)
            reading.advance()
        cute.autovec_copy(sums, my_out)


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    row = LayoutEnum.ROW_MAJOR
    major = row.sm90_mma_major_mode()
    mma = sm90.make_trivial_tiled_mma(
        cutlass.Float16, cutlass.Float16, major, major, cutlass.Float32, (1, 1, 1), tiler_mn=(64, 64)
    )
    layout_a = sm90.make_smem_layout_a(row, (64, 64, 64), cutlass.Float16, 3)
    layout_b = sm90.make_smem_layout_b(row, (64, 64, 64), cutlass.Float16, 3)
    copy = cpasync.CopyBulkTensorTileG2SOp()
    one = (None, None, 0)
    load_a, tma_a = cpasync.make_tiled_tma_atom(copy, a, cute.slice_(layout_a, one), (64, 64))
    load_b, tma_b = cpasync.make_tiled_tma_atom(copy, b, cute.slice_(layout_b, one), (64, 64))
    product_kernel(load_a, tma_a, load_b, tma_b, out, mma, layout_a, layout_b).launch(
        grid=(2, 2, 1), block=(160, 1, 1)
    )
