"""A product of fp16 matrices, c = a · bᵀ: an output a thread, tiles in shared memory, and tensor cores."""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

SIDE = 16
TILE, DEPTH = 128, 32
THREADS = 128
NAMES = ("naive", "tiled", "tensor_cores")
ON_GPU = 2048 * 2048


@cute.kernel
def naive_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    across, down, _ = cute.arch.block_idx()
    m, n = down * SIDE + t // SIDE, across * SIDE + t % SIDE
    total = cutlass.Float32(0.0)
    for k in cutlass.range(cute.size(a, mode=[1])):
        total = total + a[m, k].to(cutlass.Float32) * b[n, k].to(cutlass.Float32)
    c[m, n] = total.to(cutlass.Float16)


@cute.kernel
def tiled_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    across, down, _ = cute.arch.block_idx()
    row, column = t // SIDE, t % SIDE
    shared = cutlass.memory.SmemAllocator()
    layout = cute.make_layout((SIDE, SIDE), stride=(SIDE + 1, 1))
    left = shared.allocate_tensor(cutlass.Float32, layout, 16)
    right = shared.allocate_tensor(cutlass.Float32, layout, 16)
    total = cutlass.Float32(0.0)
    for step in cutlass.range(cute.size(a, mode=[1]) // SIDE):
        left[row, column] = a[down * SIDE + row, step * SIDE + column].to(cutlass.Float32)
        right[row, column] = b[across * SIDE + row, step * SIDE + column].to(cutlass.Float32)
        cute.arch.sync_threads()
        for k in cutlass.range_constexpr(SIDE):
            total = total + left[row, k] * right[column, k]
        cute.arch.sync_threads()
    c[down * SIDE + row, across * SIDE + column] = total.to(cutlass.Float16)


@cute.kernel
def tensor_kernel(
    a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, tiled: cute.TiledMma, copy: cute.TiledCopy, layout: cute.ComposedLayout,
):  # fmt: skip
    t, _, _ = cute.arch.thread_idx()
    across, down, _ = cute.arch.block_idx()
    tile_a = cute.local_tile(a, (TILE, DEPTH), (down, None))
    tile_b = cute.local_tile(b, (TILE, DEPTH), (across, None))
    tile_c = cute.local_tile(c, (TILE, TILE), (down, across))
    shared = cutlass.memory.SmemAllocator()
    shared_a = shared.allocate_tensor(cutlass.Float16, layout, 128)
    shared_b = shared.allocate_tensor(cutlass.Float16, layout, 128)
    mine = copy.get_slice(t)
    from_a, to_a = mine.partition_S(tile_a), mine.partition_D(shared_a)
    from_b, to_b = mine.partition_S(tile_b), mine.partition_D(shared_b)
    part = tiled.get_slice(t)
    registers_a = tiled.make_fragment_A(part.partition_A(shared_a))
    registers_b = tiled.make_fragment_B(part.partition_B(shared_b))
    target = part.partition_C(tile_c)
    sums = tiled.make_fragment_C(target)
    sums.fill(0.0)
    move = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(False, 4), cutlass.Float16)
    move_a, move_b = cute.make_tiled_copy_A(move, tiled), cute.make_tiled_copy_B(move, tiled)
    lane_a, lane_b = move_a.get_slice(t), move_b.get_slice(t)
    for step in cutlass.range(cute.size(a, mode=[1]) // DEPTH):
        cute.copy(copy, from_a[None, None, None, step], to_a)
        cute.copy(copy, from_b[None, None, None, step], to_b)
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        cute.copy(move_a, lane_a.partition_S(shared_a), lane_a.retile(registers_a))
        cute.copy(move_b, lane_b.partition_S(shared_b), lane_b.retile(registers_b))
        cute.gemm(tiled, sums, registers_a, registers_b, sums)
        cute.arch.sync_threads()
    rounded = cute.make_fragment_like(sums, cutlass.Float16)
    rounded.store(sums.load().to(cutlass.Float16))
    cute.autovec_copy(rounded, target)


@cute.jit
def naive(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    grid = (cute.size(c, mode=[1]) // SIDE, cute.size(c, mode=[0]) // SIDE, 1)
    naive_kernel(a, b, c).launch(grid=grid, block=(SIDE * SIDE, 1, 1))


@cute.jit
def tiled(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    grid = (cute.size(c, mode=[1]) // SIDE, cute.size(c, mode=[0]) // SIDE, 1)
    tiled_kernel(a, b, c).launch(grid=grid, block=(SIDE * SIDE, 1, 1))


@cute.jit
def tensor_cores(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    operation = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    tiled_mma = cute.make_tiled_mma(operation, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
    rows = cute.make_composed_layout(
        cute.make_swizzle(2, 3, 3), 0, cute.make_layout((8, DEPTH), stride=(DEPTH, 1))
    )
    layout = cute.tile_to_shape(rows, (TILE, DEPTH), (0, 1))
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cutlass.Float16, num_bits_per_copy=128)
    threads = cute.make_layout((THREADS // 4, 4), stride=(4, 1))
    copy = cute.make_tiled_copy_tv(atom, threads, cute.make_layout((1, 8)))
    grid = (cute.size(c, mode=[1]) // TILE, cute.size(c, mode=[0]) // TILE, 1)
    tensor_kernel(a, b, c, tiled_mma, copy, layout).launch(grid=grid, block=(THREADS, 1, 1))


def run(name, elements=16384):
    """Launch one of the three once; FLOPs and least bytes of its problem."""
    side = round(elements**0.5)
    a, b = (torch.rand(side, side).to(torch.float16) for _ in range(2))
    c = torch.zeros(side, side).to(torch.float16)
    globals()[name](*(from_dlpack(one, assumed_align=16) for one in (a, b, c)))
    return {"flops": 2 * side**3, "least_bytes": 6 * side**2}
