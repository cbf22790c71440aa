import cutlass
import cutlass.cute as cute
import cutlass.memory


@cute.kernel
def sum_kernel(x: cute.Tensor, out: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    part = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(128), 16)
    part[tidx] = x[bidx, tidx]
    cute.arch.sync_threads()
    for step in cutlass.range_constexpr(7):
        half = 64 >> step
        if tidx < half:
            part[tidx] = part[tidx] + part[tidx + half]
        cute.arch.sync_threads()
    if tidx == 0:
        out[bidx] = part[0]


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    sum_kernel(x, out).launch(grid=(8, 1, 1), block=(128, 1, 1))
