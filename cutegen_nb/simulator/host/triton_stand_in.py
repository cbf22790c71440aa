"""Stand-ins for Triton's benchmark functions and its driver, for programs that use Triton beside the DSL.

Programs measure with Triton and compare with its kernels. What measures runs once. A kernel of Triton is
refused in a sentence; Triton itself would ask for a library of the driver.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import torch

from cutegen_nb.simulator.host.runtime import UnansweredCall
from cutegen_nb.simulator.host.torch_timing import UnknownTime


def install() -> None:
    """Replace the functions in the modules of Triton that are imported, and in the others when they are."""
    for name, replace in _REPLACEMENTS.items():
        if name in sys.modules:
            replace(sys.modules[name])
        else:
            sys.meta_path.insert(0, _Finder(name))


class _Finder:
    """Import hook that replaces functions of one module once it is imported."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """Return the module's own specification with a loader that replaces the functions after it."""
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_replace(module: ModuleType) -> None:
                execute(module)
                _REPLACEMENTS[name](module)

            spec.loader.exec_module = execute_and_replace  # type: ignore[method-assign]
        return spec


def _time_nothing(testing: ModuleType) -> None:
    testing.do_bench = testing.do_bench_cudagraph = _do_bench  # type: ignore[attr-defined]


def _drive_nothing(driver: ModuleType) -> None:
    driver._create_driver = _Driver  # type: ignore[attr-defined]


_REPLACEMENTS: dict[str, Callable[[ModuleType], None]] = {
    "triton.testing": _time_nothing,
    "triton.runtime.driver": _drive_nothing,
}
"""Function that replaces what a module of Triton has, by the module's name."""


def _do_bench(
    fn: Callable[[], object], *_: object, quantiles: Sequence[float] | None = None,
    return_mode: str = "mean", **__: object,
) -> Any:  # fmt: skip
    """Run a function once, in place of Triton's ``do_bench``."""
    fn()
    if quantiles is not None:
        return [UnknownTime() for _ in quantiles] if len(quantiles) > 1 else UnknownTime()
    return [UnknownTime()] if return_mode == "all" else UnknownTime()


class _Driver:
    """Stand-in for Triton's driver of the device; it has what measurements ask for, and runs no kernel."""

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """Return what a measurement clears between two runs: nothing, for no cache is modelled."""
        return torch.empty(0)

    def clear_cache(self, cache: torch.Tensor) -> None:
        """Do nothing."""

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return the function by which autotuners measure."""
        return _do_bench

    def get_device_interface(self) -> ModuleType:
        """Return the module with the device's functions."""
        return torch.cuda

    def __getattr__(self, name: str) -> Any:
        message = (
            f"The program launched a kernel of Triton or asked for its driver ({name}). The simulator runs "
            "kernels of the CuTe DSL alone: leave that part out, or run it on a GPU."
        )
        raise UnansweredCall(message)
