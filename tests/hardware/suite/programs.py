"""Whole small kernels as people write them: element-wise, row-wise, and a product on tensor cores."""

from __future__ import annotations

from collections.abc import Callable

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

from suite import execution
from suite.cases import THREADS

_ROWS, _COLUMNS = 16, 1024
_SIDE = 128
_TILE, _DEPTH = 64, 32
_THREADS = 128


@cute.kernel
def relu_kernel(given: cute.Tensor, made: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    index = block * _THREADS + thread
    value = given[(None, index)].load()
    made[(None, index)].store(cute.where(value > 0.0, value, cute.full_like(value, 0.0)))


@cute.jit
def relu(x: cute.Tensor, y: cute.Tensor):
    given, made = cute.zipped_divide(x, (4,)), cute.zipped_divide(y, (4,))
    relu_kernel(given, made).launch(
        grid=(cute.size(given, mode=[1]) // _THREADS, 1, 1), block=(_THREADS, 1, 1)
    )


@cute.kernel
def softmax_kernel(x: cute.Tensor, y: cute.Tensor):
    """A warp a row; values stay in registers between the three passes."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    lane, row = thread % 32, block * (_THREADS // 32) + thread // 32
    values = cute.make_rmem_tensor(_COLUMNS // 32, cutlass.Float32)
    largest = -cutlass.Float32.inf
    for index in cutlass.range_constexpr(_COLUMNS // 32):
        values[index] = x[row, index * 32 + lane]
        largest = cute.arch.fmax(largest, values[index])
    for step in cutlass.range_constexpr(5):
        largest = cute.arch.fmax(largest, cute.arch.shuffle_sync_bfly(largest, offset=1 << step))
    total = cutlass.Float32(0.0)
    for index in cutlass.range_constexpr(_COLUMNS // 32):
        values[index] = cute.math.exp(values[index] - largest, fastmath=True)
        total = total + values[index]
    for step in cutlass.range_constexpr(5):
        total = total + cute.arch.shuffle_sync_bfly(total, offset=1 << step)
    for index in cutlass.range_constexpr(_COLUMNS // 32):
        y[row, index * 32 + lane] = values[index] / total


@cute.jit
def softmax(x: cute.Tensor, y: cute.Tensor):
    softmax_kernel(x, y).launch(grid=(_ROWS // (_THREADS // 32), 1, 1), block=(_THREADS, 1, 1))


@cute.kernel
def product_kernel(
    a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, tiled: cute.TiledMma, copy: cute.TiledCopy, layout: cute.ComposedLayout,
):  # fmt: skip
    """One 64 by 64 tile of c = a · bᵀ a block: ``cp.async`` into swizzled shared memory, ``ldmatrix``, ``mma.sync``."""
    thread, _, _ = cute.arch.thread_idx()
    across, down, _ = cute.arch.block_idx()
    tile_a = cute.local_tile(a, (_TILE, _DEPTH), (across, None))
    tile_b = cute.local_tile(b, (_TILE, _DEPTH), (down, None))
    tile_c = cute.local_tile(c, (_TILE, _TILE), (across, down))
    shared = cutlass.memory.SmemAllocator()
    shared_a = shared.allocate_tensor(cutlass.Float16, layout, 128)
    shared_b = shared.allocate_tensor(cutlass.Float16, layout, 128)
    mine = copy.get_slice(thread)
    from_a, to_a = mine.partition_S(tile_a), mine.partition_D(shared_a)
    from_b, to_b = mine.partition_S(tile_b), mine.partition_D(shared_b)
    part = tiled.get_slice(thread)
    registers_a = tiled.make_fragment_A(part.partition_A(shared_a))
    registers_b = tiled.make_fragment_B(part.partition_B(shared_b))
    target = part.partition_C(tile_c)
    sums = tiled.make_fragment_C(target)
    sums.fill(0.0)
    move = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(False, 4), cutlass.Float16)
    move_a, move_b = cute.make_tiled_copy_A(move, tiled), cute.make_tiled_copy_B(move, tiled)
    lane_a, lane_b = move_a.get_slice(thread), move_b.get_slice(thread)
    for step in cutlass.range(_SIDE // _DEPTH):
        cute.copy(copy, from_a[None, None, None, step], to_a)
        cute.copy(copy, from_b[None, None, None, step], to_b)
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        cute.copy(move_a, lane_a.partition_S(shared_a), lane_a.retile(registers_a))
        cute.copy(move_b, lane_b.partition_S(shared_b), lane_b.retile(registers_b))
        cute.gemm(tiled, sums, registers_a, registers_b, sums)
        cute.arch.sync_threads()
    cute.autovec_copy(sums, target)


@cute.jit
def product(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    operation = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    tiled = cute.make_tiled_mma(operation, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
    rows = cute.make_composed_layout(
        cute.make_swizzle(2, 3, 3), 0, cute.make_layout((8, _DEPTH), stride=(_DEPTH, 1))
    )
    layout = cute.tile_to_shape(rows, (_TILE, _DEPTH), (0, 1))
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cutlass.Float16, num_bits_per_copy=128)
    threads = cute.make_layout((_THREADS // 4, 4), stride=(4, 1))
    copy = cute.make_tiled_copy_tv(atom, threads, cute.make_layout((1, 8)))
    grid = (_SIDE // _TILE, _SIDE // _TILE, 1)
    product_kernel(a, b, c, tiled, copy, layout).launch(grid=grid, block=(_THREADS, 1, 1))


def run(names: list[str]) -> dict[str, object]:
    """Launch programs; each one's output as rows of 512 words, as other cases give theirs."""
    known = launchers()
    for name in names:
        known[name]()
    return {name: _made[name].cpu().numpy().view("u4").reshape(-1, THREADS).copy() for name in names}


_made: dict[str, torch.Tensor] = {}
"""Latest result of each program."""


def launchers() -> dict[str, Callable[[], None]]:
    """A function for each program; it compiles and launches once."""
    numbers = torch.arange(2 * _SIDE * _SIDE, dtype=torch.int64) * 2654435761 % 4001
    values = (numbers.to(torch.float32) - 2000.0) / 500.0
    x = values[: _ROWS * _COLUMNS].reshape(_ROWS, _COLUMNS)
    a, b = (values[at : at + _SIDE * _SIDE].reshape(_SIDE, _SIDE).to(torch.float16) for at in (0, 7777))
    given = {
        "relu": (relu, (x.reshape(-1),), (_ROWS * _COLUMNS,)),
        "softmax": (softmax, (x,), (_ROWS, _COLUMNS)),
        "product": (product, (a, b), (_SIDE, _SIDE)),
    }

    def launcher(name: str) -> Callable[[], None]:
        program, inputs, shape = given[name]

        def launch() -> None:
            made = torch.from_numpy(torch.zeros(shape, dtype=torch.float32).numpy()).to("cuda")
            tensors = [*(one.contiguous().to("cuda") for one in inputs), made]
            shown = [from_dlpack(one, assumed_align=16) for one in tensors]
            cute.compile[execution.OPTIONS](program, *shown)(*shown)
            torch.cuda.synchronize()
            _made[name] = made

        return launch

    return {name: launcher(name) for name in given}
