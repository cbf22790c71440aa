"""Kernels that read a few elements of a tensor that ends right after them."""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

COUNTS = {"float32": 3, "float16": 7, "bfloat16": 5, "int8": 3, "uint8": 7, "int16": 3}
"""Elements that the compiler loads together with others, by type."""


@cute.kernel
def weighted_kernel(gW: cute.Tensor, gX: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    total = gX[tidx]
    for index in cutlass.range_constexpr(cute.size(gW)):
        total = total * cutlass.Float32(0.5) + gW[index].to(cutlass.Float32)
    gX[tidx] = total


@cute.jit
def weighted(mW: cute.Tensor, mX: cute.Tensor):
    weighted_kernel(mW, mX).launch(grid=(1, 1, 1), block=(64, 1, 1))


def check(simulation):
    right = {}
    for name, count in COUNTS.items():
        weights = torch.arange(1, count + 1, device="cuda").to(getattr(torch, name))
        x = torch.ones(64, device="cuda")
        wanted = x.clone()
        for one in weights.float():
            wanted = wanted * 0.5 + one
        weighted(from_dlpack(weights, assumed_align=16), from_dlpack(x))
        right[name] = torch.equal(x, wanted)
    return {"right": right, "findings": [item.message for item in simulation.findings]}
