"""Exports one function with TVM-FFI and without it, for another program to load."""

import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def triple_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    y[tidx] = x[tidx] * 3.0


@cute.jit
def triple(x: cute.Tensor, y: cute.Tensor):
    triple_kernel(x, y).launch(grid=(1, 1, 1), block=(64, 1, 1))


def check(simulation, folder):
    x, y = torch.ones(64, device="cuda"), torch.zeros(64, device="cuda")
    given = from_dlpack(x), from_dlpack(y)
    cute.compile(triple, *given, options="--enable-tvm-ffi").export_to_c(
        f"{folder}/with.o", function_name="triple"
    )
    cute.compile(triple, *given).export_to_c(folder, "without", "triple")
    return {"launches": len(simulation.launches)}
