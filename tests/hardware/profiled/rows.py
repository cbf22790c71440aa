"""ReLU, softmax and RMSNorm as people write them: one pass over memory, a warp a row."""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

THREADS = 128
COLUMNS = 1024
NAMES = ("relu", "softmax", "rmsnorm")
ON_GPU = 1 << 25


@cute.kernel
def relu_kernel(given: cute.Tensor, made: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    index = b * THREADS + t
    value = given[(None, index)].load()
    made[(None, index)].store(cute.where(value > 0.0, value, cute.full_like(value, 0.0)))


@cute.kernel
def softmax_kernel(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    lane, row = t % 32, b * (THREADS // 32) + t // 32
    values = cute.make_rmem_tensor(COLUMNS // 32, cutlass.Float32)
    largest = -cutlass.Float32.inf
    for i in cutlass.range_constexpr(COLUMNS // 32):
        values[i] = x[row, i * 32 + lane]
        largest = cute.arch.fmax(largest, values[i])
    for step in cutlass.range_constexpr(5):
        largest = cute.arch.fmax(largest, cute.arch.shuffle_sync_bfly(largest, offset=1 << step))
    total = cutlass.Float32(0.0)
    for i in cutlass.range_constexpr(COLUMNS // 32):
        values[i] = cute.math.exp(values[i] - largest, fastmath=True)
        total = total + values[i]
    for step in cutlass.range_constexpr(5):
        total = total + cute.arch.shuffle_sync_bfly(total, offset=1 << step)
    scale = 1.0 / total
    for i in cutlass.range_constexpr(COLUMNS // 32):
        y[row, i * 32 + lane] = values[i] * scale


@cute.kernel
def rmsnorm_kernel(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    lane, row = t % 32, b * (THREADS // 32) + t // 32
    values = cute.make_rmem_tensor(COLUMNS // 32, cutlass.Float32)
    total = cutlass.Float32(0.0)
    for i in cutlass.range_constexpr(COLUMNS // 32):
        values[i] = x[row, i * 32 + lane]
        total = total + values[i] * values[i]
    for step in cutlass.range_constexpr(5):
        total = total + cute.arch.shuffle_sync_bfly(total, offset=1 << step)
    scale = cute.math.rsqrt(total / COLUMNS + 1e-5)
    for i in cutlass.range_constexpr(COLUMNS // 32):
        y[row, i * 32 + lane] = values[i] * scale


@cute.jit
def relu(x: cute.Tensor, y: cute.Tensor):
    given, made = cute.zipped_divide(x, (4,)), cute.zipped_divide(y, (4,))
    grid = (cute.size(given, mode=[1]) // THREADS, 1, 1)
    relu_kernel(given, made).launch(grid=grid, block=(THREADS, 1, 1))


@cute.jit
def softmax(x: cute.Tensor, y: cute.Tensor):
    grid = (cute.size(x, mode=[0]) // (THREADS // 32), 1, 1)
    softmax_kernel(x, y).launch(grid=grid, block=(THREADS, 1, 1))


@cute.jit
def rmsnorm(x: cute.Tensor, y: cute.Tensor):
    grid = (cute.size(x, mode=[0]) // (THREADS // 32), 1, 1)
    rmsnorm_kernel(x, y).launch(grid=grid, block=(THREADS, 1, 1))


FLOPS = {"relu": 1, "softmax": 5, "rmsnorm": 3}
"""Operations of the problem an element, as the workload's table counts them."""


def run(name, elements=65536):
    """Launch one of the three once; FLOPs and least bytes of its problem."""
    x, y = torch.rand(elements), torch.empty(elements)
    if name != "relu":
        x, y = x.reshape(-1, COLUMNS), y.reshape(-1, COLUMNS)
    globals()[name](from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16))
    return {"flops": FLOPS[name] * elements, "least_bytes": 8 * elements}
