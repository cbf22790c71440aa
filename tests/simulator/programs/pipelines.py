"""A warp that fills stages of shared memory by cp.async and a warp that empties them, over mbarriers."""

import cutlass
import torch
from cutlass import cute, pipeline
from cutlass.cute.nvgpu import cpasync
from cutlass.cute.runtime import from_dlpack

TILE, STAGES = 128, 3


@cute.kernel
def by_hand_kernel(mX: cute.Tensor, mY: cute.Tensor, waits: cutlass.Constexpr):
    """Barriers written out: full ones complete by arrivals after the copies."""
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    warp, lane = tidx // 32, tidx % 32
    smem = cutlass.utils.SmemAllocator()
    full = smem.allocate_array(cutlass.Int64, STAGES)
    empty = smem.allocate_array(cutlass.Int64, STAGES)
    sX = smem.allocate_tensor(cutlass.Float32, cute.make_layout(TILE * STAGES), 16)
    if tidx == 0:
        for stage in cutlass.range_constexpr(STAGES):
            cute.arch.mbarrier_init(full + stage, 32)
            cute.arch.mbarrier_init(empty + stage, 32)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    gX, gY = cute.zipped_divide(mX[bidx, None], (4,)), cute.zipped_divide(mY[bidx, None], (4,))
    tiles = mX.shape[1] // TILE
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
    vectors = cute.zipped_divide(sX, (4,))
    if warp == 0:
        for tile in range(tiles):
            stage = tile % STAGES
            cute.arch.mbarrier_wait(empty + stage, (tile // STAGES + 1) % 2)
            cute.copy(atom, gX[None, tile * 32 + lane], vectors[None, stage * 32 + lane])
            cute.arch.cp_async_mbarrier_arrive_noinc(full + stage)
    else:
        for tile in range(tiles):
            stage = tile % STAGES
            if cutlass.const_expr(waits):
                cute.arch.mbarrier_wait(full + stage, tile // STAGES % 2)
            turned = vectors[None, stage * 32 + 31 - lane].load()
            cute.arch.mbarrier_arrive(empty + stage)
            gY[None, tile * 32 + lane].store(turned)


@cute.jit
def by_hand(mX: cute.Tensor, mY: cute.Tensor):
    by_hand_kernel(mX, mY, True).launch(grid=(mX.shape[0], 1, 1), block=(64, 1, 1))


@cute.jit
def hasty(mX: cute.Tensor, mY: cute.Tensor):
    """The consumer does not wait for full stages."""
    by_hand_kernel(mX, mY, False).launch(grid=(mX.shape[0], 1, 1), block=(64, 1, 1))


@cute.kernel
def by_pipeline_kernel(mX: cute.Tensor, mY: cute.Tensor):
    """The same through the DSL's own pipeline of mbarriers."""
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    warp, lane = tidx // 32, tidx % 32
    smem = cutlass.utils.SmemAllocator()
    storage = smem.allocate_array(cutlass.Int64, 2 * STAGES)
    sX = smem.allocate_tensor(cutlass.Float32, cute.make_layout((TILE, STAGES)), 16)
    group = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    passing = pipeline.PipelineAsync.create(
        num_stages=STAGES, producer_group=group, consumer_group=group, barrier_storage=storage
    )
    tiles = mX.shape[1] // TILE
    if warp == 0:
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
        for tile in range(tiles):
            passing.producer_acquire(state)
            for one in cutlass.range_constexpr(TILE // 32):
                sX[one * 32 + lane, state.index] = mX[bidx, tile * TILE + one * 32 + lane]
            passing.producer_commit(state)
            state.advance()
        passing.producer_tail(state)
    else:
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
        for tile in range(tiles):
            passing.consumer_wait(state)
            for one in cutlass.range_constexpr(TILE // 32):
                mY[bidx, tile * TILE + one * 32 + lane] = sX[one * 32 + 31 - lane, state.index]
            passing.consumer_release(state)
            state.advance()


@cute.jit
def by_pipeline(mX: cute.Tensor, mY: cute.Tensor):
    by_pipeline_kernel(mX, mY).launch(grid=(mX.shape[0], 1, 1), block=(64, 1, 1))


def run(simulation, host, shape):
    """Tiles that came through, turned around, and the instructions that carried them."""
    x = torch.randn(*shape, device="cuda")
    y = torch.zeros_like(x)
    simulation.reset()
    compiled = cute.compile(host, from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16))
    compiled(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16))
    return {"x": x.cpu(), "y": y.cpu(), "findings": [one.kind for one in simulation.findings]}


def check(simulation):
    hand, made = run(simulation, by_hand, (3, 7 * TILE)), run(simulation, by_pipeline, (2, 5 * TILE))
    early = run(simulation, hasty, (1, 2 * TILE))
    text = " ".join(simulation.ptx.values())
    return {
        "by hand": torch.equal(hand["y"], hand["x"].view(3, 7, 32, 4).flip(2).reshape(3, -1)),
        "by pipeline": torch.equal(made["y"], made["x"].view(2, 5, 4, 32).flip(3).reshape(2, -1)),
        "without waiting": early["findings"],
        "findings": hand["findings"] + made["findings"],
        "names": sorted({word for word in text.split() if word.startswith(("mbarrier.", "cp.async.mb"))}),
    }
