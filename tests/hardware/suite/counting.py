"""Launches the traffic patterns and the small programs, one kernel each: the same code under Nsight Compute and on the
simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

from suite import execution, programs, traffic


@cute.kernel
def traffic_kernel(source: cute.Tensor, target: cute.Tensor, name: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    shared = cutlass.memory.SmemAllocator().allocate(traffic.SHARED_BYTES, 1024)
    execution.inline(name, source.iterator, target.iterator, block * traffic.BLOCK + thread, shared)


@cute.jit
def launch_traffic(source: cute.Tensor, target: cute.Tensor, name: cutlass.Constexpr):
    traffic_kernel(source, target, name).launch(grid=(traffic.BLOCKS, 1, 1), block=(traffic.BLOCK, 1, 1))


def launchers(group: str) -> dict[str, Callable[[], None]]:
    """A function for every kernel of a group, by name; each compiles and launches once."""
    if group == "programs":
        return programs.launchers()
    source = torch.arange(traffic.SOURCE_BYTES // 4, dtype=torch.int32).to("cuda")
    target = torch.zeros(traffic.TARGET_BYTES // 4, dtype=torch.int32).to("cuda")
    return {
        pattern.name: _launcher(pattern, source, target)
        for pattern in traffic.patterns()
        if pattern.group == group
    }


GROUPS = ("global", "shared", "matrix", "programs")


def _launcher(pattern: traffic.Pattern, source: Any, target: Any) -> Callable[[], None]:
    def launch() -> None:
        execution.blocks[pattern.name] = (traffic.block_of(pattern),)
        given = [from_dlpack(tensor, assumed_align=16) for tensor in (source, target)]
        cute.compile[execution.OPTIONS](launch_traffic, *given, pattern.name)(*given)
        torch.cuda.synchronize()

    return launch
