"""Small kernel that a waiting worker compiles and launches: the candidate's is then not its process's first.

This module imports the DSL, so it may be imported only where the DSL's environment is set.
"""

from __future__ import annotations

from collections.abc import Callable

import cuda.bindings.driver as cuda
import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack, make_fake_stream

_THREADS = 32


@cute.kernel
def _double_kernel(x: cute.Tensor, y: cute.Tensor, count: cutlass.Int32) -> None:
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    index = block * _THREADS + thread
    if index < count:
        y[index] = x[index] + x[index]


@cute.jit
def _double(x: cute.Tensor, y: cute.Tensor, count: cutlass.Int32, stream: cuda.CUstream) -> None:
    grid = ((count + _THREADS - 1) // _THREADS, 1, 1)
    _double_kernel(x, y, count).launch(grid=grid, block=(_THREADS, 1, 1), stream=stream)


def compiled(x: torch.Tensor, y: torch.Tensor) -> Callable[[], object]:
    """Compile ``y = 2 x`` for two vectors of equal length; return a function that launches it on them.

    It is called through TVM-FFI, as most kernels are.
    """
    like = [from_dlpack(tensor).mark_layout_dynamic() for tensor in (x, y)]
    stream = make_fake_stream(use_tvm_ffi_env_stream=True)
    launch = cute.compile(_double, *like, x.numel(), stream, options="--enable-tvm-ffi")
    return lambda: launch(x, y, x.numel())
