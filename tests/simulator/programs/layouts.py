"""A tile of half-precision numbers through shared memory of several layouts, read by ldmatrix."""

from pathlib import Path

import cutlass
import torch
from cutlass import cute
from cutlass.cute.nvgpu import warp
from cutlass.cute.runtime import from_dlpack

from cutegen_nb.core.codec import encode
from cutegen_nb.simulator.host.layouts import LayoutCollector

M, K = 32, 64
SAID = {}


@cute.kernel
def through(mA: cute.Tensor, mC: cute.Tensor, made: cutlass.Constexpr, tiled_mma: cute.TiledMma):
    tidx, _, _ = cute.arch.thread_idx()
    smem = cutlass.utils.SmemAllocator()
    if cutlass.const_expr(made == "padded"):
        tile_layout = cute.make_layout((M, K), stride=(K + 8, 1))
    elif cutlass.const_expr(made == "swizzled"):
        tile_layout = cute.make_composed_layout(
            cute.make_swizzle(3, 3, 3), 0, cute.make_layout((M, K), stride=(K, 1))
        )
    else:
        tile_layout = cute.make_layout((M, K), stride=(K, 1))
    sA = smem.allocate_tensor(mA.element_type, tile_layout, 1024)
    wide = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), mA.element_type, num_bits_per_copy=128)
    filling = cute.make_tiled_copy_tv(
        wide, cute.make_layout((16, 8), stride=(8, 1)), cute.make_layout((1, 8))
    )
    cute.copy(filling, filling.get_slice(tidx).partition_S(mA), filling.get_slice(tidx).partition_D(sA))
    cute.arch.sync_threads()
    rA = tiled_mma.make_fragment_A(tiled_mma.get_slice(tidx).partition_A(sA))
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), mA.element_type)
    reading = cute.make_tiled_copy_A(atom, tiled_mma)
    cute.copy(reading, reading.get_slice(tidx).partition_S(sA), reading.get_slice(tidx).retile(rA))
    cute.autovec_copy(rA, tiled_mma.get_slice(tidx).partition_A(mC))


@cute.jit
def host(mA: cute.Tensor, mC: cute.Tensor, made: cutlass.Constexpr):
    operation = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    tiled_mma = cute.make_tiled_mma(operation, cute.make_layout((2, 2, 1)))
    SAID["A"] = str(tiled_mma.tv_layout_A_tiled)
    SAID["B"] = str(tiled_mma.tv_layout_B_tiled)
    SAID["C"] = str(tiled_mma.tv_layout_C_tiled)
    through(mA, mC, made, tiled_mma).launch(grid=(1, 1, 1), block=(128, 1, 1))


def run(simulation, made):
    notes = LayoutCollector()
    notes.install()
    simulation.reset()
    a = torch.arange(M * K, dtype=torch.float32).remainder(1000).half().reshape(M, K)
    c = torch.zeros_like(a)
    host(from_dlpack(a, assumed_align=16), from_dlpack(c, assumed_align=16), made)
    records = notes.of(Path(__file__).read_text(), "layouts.py")
    counters = simulation.launches[0].counters
    return {
        "right": bool(torch.equal(a, c)),
        "records": encode(records),
        "passes": {kind: one.passes for kind, one in counters.smem_accesses.items()},
        "ideal": {kind: one.ideal for kind, one in counters.smem_accesses.items()},
    }


def check(simulation):
    return {made: run(simulation, made) for made in ("plain", "padded", "swizzled")} | {"said": SAID}
