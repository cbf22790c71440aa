"""One kernel that keeps 64 values a thread, compiled with room for them and without."""

from dataclasses import asdict

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def hold(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    kept = cute.make_rmem_tensor(cute.make_layout(64), cutlass.Float32)
    for i in cutlass.range_constexpr(64):
        kept[i] = x[t + 64 * i]
    cute.arch.sync_threads()
    total = cutlass.Float32(0)
    for i in cutlass.range_constexpr(64):
        for j in cutlass.range_constexpr(4):
            total = total + kept[i] * kept[(i * 7 + 3 * j) % 64]
    for i in cutlass.range_constexpr(64):
        y[t + 64 * i] = kept[i] + total


@cute.jit
def roomy(x: cute.Tensor, y: cute.Tensor):
    hold(x, y).launch(grid=(1, 1, 1), block=(64, 1, 1))


@cute.jit
def narrow(x: cute.Tensor, y: cute.Tensor):
    hold(x, y).launch(grid=(1, 1, 1), block=(64, 1, 1), min_blocks_per_mp=32)


def check(simulation):
    x = torch.arange(4096, dtype=torch.float32) / 4096
    results = [torch.empty(4096) for _ in range(2)]
    for host, y in zip((roomy, narrow), results, strict=True):
        host(from_dlpack(x), from_dlpack(y))
    return {
        "same": torch.equal(*results),
        "resources": [asdict(launch.resources) for launch in simulation.launches],
        "lines": [len(launch.lines) for launch in simulation.launches],
    }
