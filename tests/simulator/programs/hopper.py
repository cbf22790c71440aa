"""Products by TMA and wgmma of several types and layouts, right ones and faulty ones, and copies by TMA."""

import cutlass
import cutlass.utils.hopper_helpers as sm90
import torch
from cutlass import cute, pipeline
from cutlass.cute.runtime import from_dlpack
from cutlass.tensor_utils import LayoutEnum

from cutegen_nb.simulator.ptx.faults import SimulatorFault

M, N, STAGES, GROUP = 64, 128, 3, 128
ROW, COLUMN = LayoutEnum.ROW_MAJOR, LayoutEnum.COL_MAJOR


@cute.kernel
def product_kernel(  # noqa: PLR0913, PLR0917 - a kernel has this many parts
    load_a: cute.CopyAtom,
    mA: cute.Tensor,
    load_b: cute.CopyAtom,
    mB: cute.Tensor,
    mC: cute.Tensor,
    mma: cute.TiledMma,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    k_tile: cutlass.Constexpr,
    fault: cutlass.Constexpr,
):
    """The last warp loads, a warp group multiplies. C has one tile a CTA."""
    tidx, _, _ = cute.arch.thread_idx()
    down, across, _ = cute.arch.block_idx()
    smem = cutlass.memory.SmemAllocator()
    barriers = smem.allocate_array(cutlass.Int64, 2 * STAGES)
    sA = smem.allocate_tensor(mma.op.a_dtype, layout_a.outer, 1024, swizzle=layout_a.inner)
    sB = smem.allocate_tensor(mma.op.b_dtype, layout_b.outer, 1024, swizzle=layout_b.inner)
    stage_bytes = (M + N) * k_tile * mma.op.a_dtype.width // 8
    pipe = pipeline.PipelineTmaAsync.create(
        barrier_storage=barriers,
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, GROUP // 32),
        tx_count=stage_bytes + (16 if fault == "bytes" else 0),
        cta_layout_vmnk=cute.make_layout((1, 1, 1, 1)),
    )
    gA = cute.local_tile(mA, (M, k_tile), (down, None))
    gB = cute.local_tile(mB, (N, k_tile), (across, None))
    alone, group = cute.make_layout(1), cute.group_modes
    to_a, from_a = cute.nvgpu.cpasync.tma_partition(load_a, 0, alone, group(sA, 0, 2), group(gA, 0, 2))
    to_b, from_b = cute.nvgpu.cpasync.tma_partition(load_b, 0, alone, group(sB, 0, 2), group(gB, 0, 2))
    steps = cute.size(gA, mode=[2])
    if tidx >= GROUP:
        filled = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
        for k in cutlass.range(steps, unroll=1):
            pipe.producer_acquire(filled)
            full = pipe.producer_get_barrier(filled)
            cute.copy(load_a, from_a[None, k], to_a[None, filled.index], tma_bar_ptr=full)
            cute.copy(load_b, from_b[None, k], to_b[None, filled.index], tma_bar_ptr=full)
            pipe.producer_commit(filled)
            filled.advance()
        pipe.producer_tail(filled)
    else:
        part = mma.get_slice(0)
        rA, rB = mma.make_fragment_A(part.partition_A(sA)), mma.make_fragment_B(part.partition_B(sB))
        target = mma.get_slice(tidx).partition_C(cute.local_tile(mC, (M, N), (down, across)))
        sums = cute.make_rmem_tensor(target.shape, mma.op.acc_dtype)
        sums.fill(0)
        mma.set(cute.nvgpu.warpgroup.Field.ACCUMULATE, True)
        read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
        for _ in cutlass.range(steps, unroll=1):
            if cutlass.const_expr(fault != "unwaited"):
                pipe.consumer_wait(read)
            cute.nvgpu.warpgroup.fence()
            for block in cutlass.range_constexpr(cute.size(rA, mode=[2])):
                slot = (None, None, block, read.index)
                cute.gemm(mma, sums, rA[slot], rB[slot], sums)
            cute.nvgpu.warpgroup.commit_group()
            if cutlass.const_expr(fault == "early"):  # the stage is given away while it is multiplied
                pipe.consumer_release(read)
                cute.nvgpu.warpgroup.wait_group(0)
            else:
                if cutlass.const_expr(fault != "no wait"):
                    cute.nvgpu.warpgroup.wait_group(0)
                pipe.consumer_release(read)
            read.advance()
        for i in cutlass.range_constexpr(cute.size(sums)):
            target[i] = sums[i]


@cute.jit
def product(
    mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, majors: cutlass.Constexpr, fault: cutlass.Constexpr
):
    dtype = mA.element_type
    k_tile = 128 * 8 // dtype.width
    mma = sm90.make_trivial_tiled_mma(
        dtype, dtype, majors[0].sm90_mma_major_mode(), majors[1].sm90_mma_major_mode(), mC.element_type,
        (1, 1, 1), tiler_mn=(64, N),
    )  # fmt: skip
    shape = (M, N, k_tile)
    layout_a = sm90.make_smem_layout_a(majors[0], shape, dtype, STAGES)
    layout_b = sm90.make_smem_layout_b(majors[1], shape, dtype, STAGES)
    copy = cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp()
    load_a, tma_a = cute.nvgpu.cpasync.make_tiled_tma_atom(
        copy, mA, cute.slice_(layout_a, (None, None, 0)), (M, k_tile)
    )
    load_b, tma_b = cute.nvgpu.cpasync.make_tiled_tma_atom(
        copy, mB, cute.slice_(layout_b, (None, None, 0)), (N, k_tile)
    )
    product_kernel(load_a, tma_a, load_b, tma_b, mC, mma, layout_a, layout_b, k_tile, fault).launch(
        grid=(cute.size(mC, mode=[0]) // M, cute.size(mC, mode=[1]) // N, 1), block=(GROUP + 32, 1, 1)
    )


def numbers(rows, dtype):
    values = torch.randint(-4, 5, (rows, 384))
    return values.to(getattr(torch, dtype)).cuda()


def wrapped(x):
    if x.dtype is torch.float8_e4m3fn:
        bits = from_dlpack(x.view(torch.int8), assumed_align=16)
        bits.element_type = cutlass.Float8E4M3FN
        return bits
    return from_dlpack(x, assumed_align=16)


def multiplied(simulation, dtype, majors=(ROW, ROW), fault=""):
    """``right``, or how far the product is off; and the kinds and sentences of findings."""
    torch.manual_seed(3)
    a, b = numbers(128, dtype), numbers(256, dtype)
    if majors[0] is COLUMN:
        a = a.t().contiguous().t()
    if majors[1] is COLUMN:
        b = b.t().contiguous().t()
    c = torch.zeros(128, 256, device="cuda", dtype=torch.int32 if dtype == "int8" else torch.float32)
    simulation.reset()
    stopped = ""
    try:
        product(wrapped(a), wrapped(b), from_dlpack(c, assumed_align=16), majors, fault)
    except SimulatorFault as deadlock:
        stopped = str(deadlock)
    error = (c.double() - a.double() @ b.double().t()).abs().max().item()
    return {
        "error": error, "stopped": stopped, "findings": [(one.kind, one.message) for one in simulation.findings],
        "flops": dict(simulation.launches[-1].counters.flops) if simulation.launches else {},
        "loaded": simulation.launches[-1].counters.gmem_load_bytes if simulation.launches else 0,
    }  # fmt: skip


@cute.kernel
def parameters_kernel(atom: cute.CopyAtom):
    cute.nvgpu.cpasync.prefetch_descriptor(atom)


def described(extents, strides, box, swizzle, internal):
    """Bytes of the tensor map that the DSL's host code makes for a tensor, and the tensor's address."""
    dtype = {"tf32": "float32"}.get(internal, internal)
    op = cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp()
    more = {"internal_type": cutlass.TFloat32} if internal == "tf32" else {}

    def atom_of(tensor):
        layout = cute.make_layout(tuple(box))
        if swizzle:
            layout = cute.make_composed_layout(cute.make_swizzle(swizzle, 4, 3), 0, layout)
        return cute.nvgpu.cpasync.make_tiled_tma_atom(op, tensor, layout, tuple(box), **more)[0]

    @cute.jit
    def host(given: cute.Tensor):
        tensor = cute.make_tensor(given.iterator, cute.make_layout(tuple(extents), stride=tuple(strides)))
        parameters_kernel(atom_of(tensor)).launch(grid=(1, 1, 1), block=(32, 1, 1))

    x = torch.zeros(64, dtype=getattr(torch, dtype), device="cuda")
    host(from_dlpack(x, assumed_align=16))
    return x.data_ptr()


def maps(simulation):
    """Each tensor map as bytes, beside what it was made from."""
    taken = []
    host = simulation._host
    take = type(host).take

    def watched(self):
        launches = take(self)
        taken.extend(one.parameters[0] for one in launches)
        return launches

    type(host).take = watched
    try:
        return [{"case": case, "address": described(*case), "bytes": taken.pop().hex()} for case in MAPS]
    finally:
        type(host).take = take


MAPS = [
    ((256, 512), (1, 256), (64, 128), 3, "float16"),
    ((256, 512), (1, 264), (32, 128), 2, "bfloat16"),
    ((256, 512), (1, 256), (16, 256), 1, "float16"),
    ((4096,), (1,), (64,), 0, "float32"),
    ((256, 24, 7), (1, 256, 6144), (64, 4, 2), 0, "int32"),
    ((256, 24, 7, 5), (1, 256, 6144, 43008), (32, 4, 2, 3), 0, "float64"),
    ((256, 24, 7, 5, 3), (1, 256, 6144, 43008, 215040), (16, 4, 2, 3, 2), 0, "int8"),
    ((256, 5, 6), (1, 1 << 34, 1 << 37), (64, 1, 1), 0, "float16"),
    ((256, 512), (1, 256), (8, 128), 0, "tf32"),
]


def check(simulation):
    return {
        "maps": maps(simulation),
        "products": {
            "float16": multiplied(simulation, "float16"),
            "bfloat16": multiplied(simulation, "bfloat16"),
            "e4m3": multiplied(simulation, "float8_e4m3fn"),
            "int8": multiplied(simulation, "int8"),
            "A transposed": multiplied(simulation, "float16", (COLUMN, ROW)),
            "both transposed": multiplied(simulation, "bfloat16", (COLUMN, COLUMN)),
        },
        "early": multiplied(simulation, "float16", fault="early"),
        "unwaited": multiplied(simulation, "float16", fault="unwaited"),
        "no wait": multiplied(simulation, "float16", fault="no wait"),
        "bytes": multiplied(simulation, "float16", fault="bytes"),
    }
