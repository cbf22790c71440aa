"""Products on tensor cores through the DSL's own operations: half, bfloat16, TF32, with tiles through ldmatrix."""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.nvgpu import warp
from cutlass.cute.runtime import from_dlpack

M, N, K = 64, 32, 64


@cute.kernel
def direct_kernel(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, tiled_mma: cute.TiledMma):
    """Fragments straight from global memory."""
    tidx, _, _ = cute.arch.thread_idx()
    mine = tiled_mma.get_slice(tidx)
    gA, gB, gC = mine.partition_A(mA), mine.partition_B(mB), mine.partition_C(mC)
    rA, rB = tiled_mma.make_fragment_A(gA), tiled_mma.make_fragment_B(gB)
    rC = tiled_mma.make_fragment_C(gC)
    cute.autovec_copy(gA, rA)
    cute.autovec_copy(gB, rB)
    rC.fill(0.0)
    for k in cutlass.range_constexpr(cute.size(rA, mode=[2])):
        cute.gemm(tiled_mma, rC, rA[None, None, k], rB[None, None, k], rC)
    cute.autovec_copy(rC, gC)


@cute.jit
def direct(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, operation: cutlass.Constexpr):
    tiled_mma = cute.make_tiled_mma(operation, cute.make_layout((2, 2, 1)))
    direct_kernel(mA, mB, mC, tiled_mma).launch(grid=(1, 1, 1), block=(128, 1, 1))


@cute.kernel
def tiles_kernel(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, tiled_mma: cute.TiledMma):
    """Tiles copied to padded shared memory by plain stores, loaded by ldmatrix; N contiguous in B."""
    tidx, _, _ = cute.arch.thread_idx()
    smem = cutlass.utils.SmemAllocator()
    sA = smem.allocate_tensor(mA.element_type, cute.make_layout((M, K), stride=(K + 8, 1)), 16)
    sB = smem.allocate_tensor(mB.element_type, cute.make_layout((N, K), stride=(1, N + 8)), 16)
    for index in range(tidx, M * K, 128):
        sA[index // K, index % K] = mA[index // K, index % K]
    for index in range(tidx, N * K, 128):
        sB[index // K, index % K] = mB[index // K, index % K]
    cute.arch.sync_threads()
    mine = tiled_mma.get_slice(tidx)
    gC = mine.partition_C(mC)
    rA = tiled_mma.make_fragment_A(mine.partition_A(sA))
    rB = tiled_mma.make_fragment_B(mine.partition_B(sB))
    rC = tiled_mma.make_fragment_C(gC)
    rC.fill(0.0)
    atom_A = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), mA.element_type)
    atom_B = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 2), mB.element_type)
    copy_A, copy_B = cute.make_tiled_copy_A(atom_A, tiled_mma), cute.make_tiled_copy_B(atom_B, tiled_mma)
    cute.copy(copy_A, copy_A.get_slice(tidx).partition_S(sA), copy_A.get_slice(tidx).retile(rA))
    cute.copy(copy_B, copy_B.get_slice(tidx).partition_S(sB), copy_B.get_slice(tidx).retile(rB))
    for k in cutlass.range_constexpr(cute.size(rA, mode=[2])):
        cute.gemm(tiled_mma, rC, rA[None, None, k], rB[None, None, k], rC)
    cute.autovec_copy(rC, gC)


@cute.jit
def tiles(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, operation: cutlass.Constexpr):
    tiled_mma = cute.make_tiled_mma(operation, cute.make_layout((2, 2, 1)))
    tiles_kernel(mA, mB, mC, tiled_mma).launch(grid=(1, 1, 1), block=(128, 1, 1))


def tensor(x, kind):
    """The tensor as the DSL's, under the DSL's type where torch has none for it."""
    made = from_dlpack(x.view(torch.uint8) if x.itemsize == 1 else x, assumed_align=16)
    if kind is not None:
        made.element_type = kind
    return made


def run(simulation, host, operation, dtypes, kind=None):
    """The product's largest error against float64, its instruction and its FLOPs."""
    in_dtype, out_dtype = dtypes
    a, b = (torch.randn(rows, K, device="cuda").to(in_dtype) for rows in (M, N))
    if host is tiles:
        b = b.t().contiguous().t()
    c = torch.zeros(M, N, dtype=out_dtype, device="cuda")
    simulation.reset()
    compiled = cute.compile(host, tensor(a, kind), tensor(b, kind), tensor(c, None), operation)
    compiled(tensor(a, kind), tensor(b, kind), tensor(c, None))
    (launch,) = simulation.launches
    text = list(simulation.ptx.values())[-1]
    names = sorted({word for word in text.split() if word.startswith(("mma.sync", "ldmatrix"))})
    used = [one.double() for one in (a, b)]
    if kind is cutlass.TFloat32:
        used = [(one.view(torch.int32) & ~0x1FFF).view(torch.float32).double() for one in (a, b)]
    error = (c.double() - used[0] @ used[1].t()).abs().max().item()
    return {"error": error, "names": names, "flops": dict(launch.counters.flops)}


def check(simulation):
    half, single, bfloat = (
        (torch.float16,) * 2,
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
    )
    operation = warp.MmaF16BF16Op
    found = {
        "f16 f16": run(simulation, direct, operation(cutlass.Float16, cutlass.Float16, (16, 8, 16)), half),
        "f16 f32": run(simulation, direct, operation(cutlass.Float16, cutlass.Float32, (16, 8, 8)), single),
        "bf16": run(simulation, direct, operation(cutlass.BFloat16, cutlass.Float32, (16, 8, 16)), bfloat),
        "tf32": run(
            simulation, direct, warp.MmaTF32Op((16, 8, 8)), (torch.float32, torch.float32), cutlass.TFloat32
        ),
        "ldmatrix": run(simulation, tiles, operation(cutlass.BFloat16, cutlass.Float32, (16, 8, 16)), bfloat),
    }
    if simulation.device.architecture != "sm_80":
        for name, kind, dtype in (
            ("e4m3", cutlass.Float8E4M3FN, torch.float8_e4m3fn),
            ("e5m2", cutlass.Float8E5M2, torch.float8_e5m2),
        ):
            operation = warp.MmaFP8Op(kind, cutlass.Float32, (16, 8, 32))
            found[name] = run(simulation, direct, operation, (dtype, torch.float32), kind)
    return found
