import cutlass
import cutlass.cute as cute
import cutlass.memory
from cutlass.cute.nvgpu import cpasync


@cute.kernel
def sum_kernel(x: cute.Tensor, out: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    tile = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(512), 16)
    copy = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
    total = cutlass.Float32(0.0)
    for k in cutlass.range(8):
        vector = cute.local_tile(x, (1, 4), (row, k * 128 + tidx))
        cute.copy(copy, vector[0, None], cute.local_tile(tile, (4,), (tidx,)))
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        for j in cutlass.range_constexpr(4):
            total = total + tile[j * 128 + tidx]
        cute.arch.sync_threads()
    out[row, tidx] = total


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    sum_kernel(x, out).launch(grid=(16, 1, 1), block=(128, 1, 1))
