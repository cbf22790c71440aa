"""A Ray cluster of two local nodes with a CPU each, a problem, and kernels that are right or wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from cutegen_nb.cluster.ray_members import RayMembers
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.problem import Problem, ProblemForm

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
STARTS = 3
NODE = {"object_store_memory": 80 << 20, "num_cpus": 1}
PROBLEM = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(37, 61)]


def get_init_inputs():
    return []
"""
KERNEL = """import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def relu_kernel(x: cute.Tensor, y: cute.Tensor, count: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    index = block * 256 + thread
    if index < count:
        y[index] = {scale} * cutlass.max(x[index], cutlass.Float32(0.0))


@cute.jit
def relu(x: cute.Tensor, y: cute.Tensor, count: cutlass.Int32):
    relu_kernel(x, y, count).launch(grid=((count + 255) // 256, 1, 1), block=(256, 1, 1))


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = None

    def forward(self, x):
        y = torch.empty_like(x)
        flat = [from_dlpack(t.view(-1)).mark_layout_dynamic() for t in (x, y)]
        if self.compiled is None:
            self.compiled = cute.compile(relu, *flat, x.numel())
        self.compiled(*flat, x.numel())
        return y
"""


@pytest.fixture
def problem() -> Problem:
    return Problem(name="relu", source=PROBLEM, form=ProblemForm.KERNELBENCH)


@pytest.fixture
def kernel() -> Callable[[float], Candidate]:
    """Make a kernel that is right with a scale of 1.0 and wrong with any other."""
    return lambda scale: Candidate(source=KERNEL.format(scale=scale), author="test")


@pytest.fixture(scope="session")
def cluster() -> Iterator[object]:
    """Two nodes; each new test process has to find this source tree and not an installed one."""
    from ray.cluster_utils import Cluster

    environment = pytest.MonkeyPatch()
    environment.setenv("PYTHONPATH", str(ROOT))
    environment.setenv("RAY_USAGE_STATS_ENABLED", "0")

    def started() -> Cluster:
        found = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
        try:
            found.second = found.add_node(**NODE)
        except Exception:  # Ray raises Exception itself
            found.shutdown()
            raise
        return found

    found = patiently(started)
    yield found
    found.shutdown()
    environment.undo()


def patiently(start: Callable[[], T]) -> T:
    """Start again what did not start in time: Ray gives the agents of a node some seconds, on any machine."""
    for _ in range(STARTS - 1):
        with contextlib.suppress(Exception):  # Ray raises Exception itself
            return start()
    return start()


@pytest.fixture
def losing_a_node(cluster) -> Iterator[None]:
    """Give the cluster its second node back after a test that removes it."""
    yield
    cluster.second = patiently(lambda: cluster.add_node(**NODE))


@pytest.fixture
def members(cluster) -> Callable[..., RayMembers]:
    def make(workers: int = 2, say=lambda _: None, device: str = "simulator") -> RayMembers:
        return RayMembers(
            address=cluster.address, workers=workers, device=device, baselines=(), screening=True, say=say
        )

    return make
