"""Functions that measure: of the DSL, of its autotuner and of Triton."""

import importlib
import sys
import tempfile
from pathlib import Path

import cutlass
import pytest
import torch
from cutlass import cute, testing
from cutlass.cute.runtime import from_dlpack

from cutegen_nb.simulator.host.runtime import UnansweredCall

MARKED = 999_999.0


@cute.kernel
def add_kernel(x: cute.Tensor, value: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    x[tidx] = x[tidx] + cutlass.Float32(value)


@cute.jit
def add(x: cute.Tensor, value: cutlass.Constexpr):
    add_kernel(x, value).launch(grid=(1, 1, 1), block=(64, 1, 1))


def the_dsl_s_benchmark(simulation):
    x = torch.zeros(64, device="cuda")
    compiled = cute.compile(add, from_dlpack(x), 1)
    arguments = testing.JitArguments(from_dlpack(x))
    took = testing.benchmark(compiled, kernel_arguments=arguments, warmup_iterations=10, iterations=100)
    assert took == MARKED
    assert len(simulation.launches) == 1
    assert x.tolist() == [1.0] * 64


def a_benchmark_with_workspaces(simulation):
    made = []

    def workspace():
        made.append(torch.zeros(64, device="cuda"))
        return testing.JitArguments(from_dlpack(made[-1]))

    compiled = cute.compile(add, from_dlpack(torch.zeros(64, device="cuda")), 1)
    testing.benchmark(compiled, workspace_generator=workspace, workspace_count=5, iterations=100)
    assert len(simulation.launches) == len(made) == 1


def the_autotuner(simulation):
    """Each configuration runs once, and the first is the best: no time is less than another."""
    x = torch.zeros(64, device="cuda")
    tried = []

    def build(value=0):
        tried.append(value)
        compiled = cute.compile(add, from_dlpack(x), value)
        return lambda: compiled(from_dlpack(x))

    best = cutlass.testing.tune(build, {"value": [3, 1, 2]}, warmup_iterations=5, iterations=50)
    assert tried == [3, 1, 2]
    assert best == {"value": 3}
    assert len(simulation.launches) == 3
    assert x.tolist() == [6.0] * 64


TRITON_DRIVER = """
def _create_driver():
    raise AssertionError("libcuda.so cannot be found")

class Config:
    @property
    def active(self):
        return _create_driver()

driver = Config()
"""


def triton_s_benchmarks(simulation):
    """Triton is not needed for it: here stands a package of its name whose own functions would ask a driver."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "triton")
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "testing.py").write_text(
            "def do_bench(fn): raise RuntimeError\ndo_bench_cudagraph = do_bench\n"
        )
        sys.path.insert(0, folder)
        triton_testing = importlib.import_module("triton.testing")
        (package / "runtime").mkdir()
        (package / "runtime" / "__init__.py").write_text("from .driver import driver\n")
        (package / "runtime" / "driver.py").write_text(TRITON_DRIVER)
        triton_runtime = importlib.import_module("triton.runtime")
    active = triton_runtime.driver.active
    active.clear_cache(active.get_empty_cache_for_benchmark())
    assert active.get_device_interface() is torch.cuda
    with pytest.raises(UnansweredCall, match="launched a kernel of Triton"):
        active.get_current_device()
    calls = []
    assert triton_testing.do_bench(lambda: calls.append(1), warmup=25, rep=100) == MARKED
    assert triton_testing.do_bench_cudagraph(lambda: calls.append(1), return_mode="all") == [MARKED]
    assert triton_testing.do_bench(lambda: calls.append(1), quantiles=[0.5, 0.2, 0.8]) == [MARKED] * 3
    assert len(calls) == 3


CASES = (the_dsl_s_benchmark, a_benchmark_with_workspaces, the_autotuner, triton_s_benchmarks)
