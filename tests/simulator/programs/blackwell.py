"""Products by TMA and tcgen05.mma of several types and layouts, right ones and faulty ones."""

import cutlass
import cutlass.utils.blackwell_helpers as sm100
import torch
from cutlass import cute, pipeline
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, tcgen05
from cutlass.cute.runtime import from_dlpack

from cutegen_nb.simulator.ptx.faults import SimulatorFault

M, N, STAGES, THREADS, COLUMNS = 128, 64, 2, 128, 64


@cute.struct
class Shared:
    stages: cute.struct.MemRange[cutlass.Int64, 2 * STAGES]
    sums: cute.struct.MemRange[cutlass.Int64, 2]
    columns: cutlass.Int32


@cute.kernel
def product_kernel(  # noqa: PLR0913, PLR0915, PLR0917 - a kernel has this many parts
    mma: cute.TiledMma,
    load_a: cute.CopyAtom,
    mA: cute.Tensor,
    load_b: cute.CopyAtom,
    mB: cute.Tensor,
    mC: cute.Tensor,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    k_tile: cutlass.Constexpr,
    fault: cutlass.Constexpr,
):
    """Warp 0 loads and multiplies, all four warps store. C has one tile a CTA."""
    tidx, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    down, across, _ = cute.arch.block_idx()
    smem = cutlass.memory.SmemAllocator()
    shared = smem.allocate(Shared)
    sA = smem.allocate_tensor(mma.op.a_dtype, layout_a.outer, 128, swizzle=layout_a.inner)
    sB = smem.allocate_tensor(mma.op.b_dtype, layout_b.outer, 128, swizzle=layout_b.inner)
    barrier = pipeline.NamedBarrier(barrier_id=1, num_threads=THREADS)
    tensor_memory = cutlass.memory.TmemAllocator(shared.columns.ptr, barrier_for_retrieve=barrier)
    tensor_memory.allocate(COLUMNS)
    group = pipeline.CooperativeGroup
    loads, reads = pipeline.PipelineTmaUmma.create(
        num_stages=STAGES, producer_group=group(pipeline.Agent.Thread),
        consumer_group=group(pipeline.Agent.Thread), tx_count=(M + N) * k_tile * mma.op.a_dtype.width // 8,
        barrier_storage=shared.stages.data_ptr(),
    ).make_participants()  # fmt: skip
    sums, stores = pipeline.PipelineUmmaAsync.create(
        num_stages=1, producer_group=group(pipeline.Agent.Thread),
        consumer_group=group(pipeline.Agent.Thread, THREADS), barrier_storage=shared.sums.data_ptr(),
    ).make_participants()  # fmt: skip
    coord, tile = (down, across, None), (M, N, k_tile)
    gA = cute.local_tile(mA, tile, coord, proj=(1, None, 1))
    gB = cute.local_tile(mB, tile, coord, proj=(None, 1, 1))
    gC = cute.local_tile(mC, tile, coord, proj=(1, 1, None))
    part = mma.get_slice(0)
    rA, rB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)
    flat, alone = cute.group_modes, cute.make_layout(1)
    to_a, from_a = cpasync.tma_partition(load_a, 0, alone, flat(sA, 0, 3), flat(part.partition_A(gA), 0, 3))
    to_b, from_b = cpasync.tma_partition(load_b, 0, alone, flat(sB, 0, 3), flat(part.partition_B(gB), 0, 3))
    tensor_memory.wait_for_alloc()
    pointer = tensor_memory.retrieve_ptr(mma.op.acc_dtype)
    tAcc = cute.make_tensor(pointer, mma.make_fragment_C(mma.partition_shape_C((M, N))).layout)
    if warp == 0:
        target = sums.acquire_and_advance()
        for k in cutlass.range(cute.size(gA, mode=[2]), unroll=1):
            empty = loads.acquire_and_advance()
            cute.copy(load_a, from_a[None, k], to_a[None, empty.index], tma_bar_ptr=empty.barrier)
            cute.copy(load_b, from_b[None, k], to_b[None, empty.index], tma_bar_ptr=empty.barrier)
            full = reads.wait_and_advance()
            for block in cutlass.range_constexpr(cute.size(rA, mode=[2])):
                slot = (None, None, block, full.index)
                cute.gemm(mma, tAcc, rA[slot], rB[slot], tAcc)
                mma.set(tcgen05.Field.ACCUMULATE, True)
            full.release()
        target.commit()
    tensor_memory.relinquish_alloc_permit()
    if cutlass.const_expr(fault != "early"):
        done = stores.wait_and_advance()
    atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), mma.op.acc_dtype)
    tile_c = ((cute.size(tAcc, mode=[0, 0]), 32),)
    tAcc_parts, gC_parts = cute.zipped_divide(tAcc, tile_c), cute.zipped_divide(part.partition_C(gC), tile_c)
    copy = tcgen05.make_tmem_copy(atom, tAcc_parts[None, 0]).get_slice(tidx)
    origin, goal = copy.partition_S(tAcc_parts), copy.partition_D(gC_parts)
    registers = cute.make_rmem_tensor(goal[None, None, 0].shape, mma.op.acc_dtype)
    for i in cutlass.range_constexpr(cute.size(origin, mode=[2])):
        cute.copy(copy, origin[None, None, i], registers)
        cute.autovec_copy(registers, goal[None, None, i])
    if cutlass.const_expr(fault != "early"):
        done.release()
    pipeline.sync(barrier_id=1)
    if cutlass.const_expr(fault != "kept"):
        tensor_memory.free(pointer)


@cute.jit
def product(
    mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, majors: cutlass.Constexpr, fault: cutlass.Constexpr
):
    dtype, k_tile = mA.element_type, 128 * 8 // mA.element_type.width
    mma = sm100.make_trivial_tiled_mma(
        dtype, dtype, majors[0], majors[1], mC.element_type, tcgen05.CtaGroup.ONE, (M, N)
    )
    shape = (M, N, k_tile)
    layout_a = sm100.make_smem_layout_a(mma, shape, dtype, STAGES)
    layout_b = sm100.make_smem_layout_b(mma, shape, dtype, STAGES)
    op = cpasync.CopyBulkTensorTileG2SOp(tcgen05.CtaGroup.ONE)
    one_a, one_b = (cute.select(one, mode=[0, 1, 2]) for one in (layout_a, layout_b))
    load_a, tma_a = cute.nvgpu.make_tiled_tma_atom_A(op, mA, one_a, shape, mma)
    load_b, tma_b = cute.nvgpu.make_tiled_tma_atom_B(op, mB, one_b, shape, mma)
    product_kernel(mma, load_a, tma_a, load_b, tma_b, mC, layout_a, layout_b, k_tile, fault).launch(
        grid=(cute.size(mC, mode=[0]) // M, cute.size(mC, mode=[1]) // N, 1), block=(THREADS, 1, 1)
    )


def wrapped(x):
    if x.dtype is torch.float8_e4m3fn:
        bits = from_dlpack(x.view(torch.int8), assumed_align=16)
        bits.element_type = cutlass.Float8E4M3FN
        return bits
    return from_dlpack(x, assumed_align=16)


def multiplied(simulation, dtype, majors=("K", "K"), fault=""):
    """Largest error of a product, what stopped it, its findings and its counts."""
    torch.manual_seed(3)
    a, b = (torch.randint(-4, 5, (rows, 256)).to(getattr(torch, dtype)).cuda() for rows in (256, 128))
    if majors[0] == "MN":
        a = a.t().contiguous().t()
    if majors[1] == "MN":
        b = b.t().contiguous().t()
    c = torch.zeros(256, 128, device="cuda", dtype=torch.int32 if dtype == "int8" else torch.float32)
    simulation.reset()
    stopped = ""
    try:
        modes = tuple(getattr(OperandMajorMode, one) for one in majors)
        product(wrapped(a), wrapped(b), from_dlpack(c, assumed_align=16), modes, fault)
    except SimulatorFault as fault_found:
        stopped = str(fault_found)
    error = (c.double() - a.double() @ b.double().t()).abs().max().item()
    counters = simulation.launches[-1].counters if simulation.launches else None
    return {
        "error": error, "stopped": stopped, "findings": [(one.kind, one.line) for one in simulation.findings],
        "products": dict(counters.products) if counters else {},
        "loaded": counters.gmem_load_bytes if counters else 0,
    }  # fmt: skip


def check(simulation):
    return {
        "products": {
            "float16": multiplied(simulation, "float16"),
            "A transposed": multiplied(simulation, "float16", ("MN", "K")),
            "int8": multiplied(simulation, "int8"),
            "e4m3": multiplied(simulation, "float8_e4m3fn", ("K", "MN")),
        },
        "early": multiplied(simulation, "float16", fault="early"),
        "kept": multiplied(simulation, "float16", fault="kept"),
    }
