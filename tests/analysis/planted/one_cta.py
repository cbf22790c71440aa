"""A stream of numbers that one CTA walks alone (planted), or that as many CTAs share as there is work for."""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

THREADS = 128
ON_GPU = 1 << 20
"""Numbers on a GPU: one CTA takes its time."""
FAULT, CAUSE = "alone", "too-few-ctas"
CLEAN = "shared"


@cute.kernel
def walk(x: cute.Tensor, y: cute.Tensor, steps: cutlass.Int32):
    t, _, _ = cute.arch.thread_idx()
    for i in cutlass.range(steps):
        y[i * THREADS + t] = x[i * THREADS + t] * 2.0 + 1.0  # planted: every element passes through one CTA


@cute.kernel
def one_each(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    y[b * THREADS + t] = x[b * THREADS + t] * 2.0 + 1.0


@cute.jit
def alone(x: cute.Tensor, y: cute.Tensor):
    walk(x, y, cute.size(x) // THREADS).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))


@cute.jit
def shared(x: cute.Tensor, y: cute.Tensor):
    one_each(x, y).launch(grid=(cute.size(x) // THREADS, 1, 1), block=(THREADS, 1, 1))


def run(name, elements=65536):
    x, y = torch.rand(elements), torch.empty(elements)
    globals()[name](from_dlpack(x), from_dlpack(y))
    return {"flops": 2 * x.numel(), "least_bytes": 8 * x.numel()}
