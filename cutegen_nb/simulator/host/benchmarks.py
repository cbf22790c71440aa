"""Benchmark functions of the DSL and of Triton, made to run once: without a clock, a repeat tells nothing."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from cutegen_nb.simulator.host.torch_timing import UnknownTime

_TRITON = "triton.testing"
_ONCE = {"warmup_iterations": 0, "iterations": 1}
_BENCHMARK = {**_ONCE, "use_cuda_graphs": False, "use_cupti": False}
_AUTOTUNE = {**_ONCE, "use_cold_l2": False}


def install() -> None:
    """Replace the benchmark functions and the timing of the DSL's autotuners in this process."""
    import cutlass.testing
    from cutlass.cute import testing

    cutlass.testing.benchmark = _once(cutlass.testing.benchmark, _BENCHMARK)
    cutlass.testing._benchmark_for_autotune = _once(cutlass.testing._benchmark_for_autotune, _AUTOTUNE)
    testing.benchmark = _once(testing.benchmark, _BENCHMARK)
    if _TRITON in sys.modules:
        _time_nothing(sys.modules[_TRITON])
    else:
        sys.meta_path.insert(0, _TritonFinder())


def _once(benchmark: Callable[..., Any], settings: Mapping[str, object]) -> Callable[..., Any]:
    @functools.wraps(benchmark)
    def run(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("workspace_generator") is not None:
            kwargs["workspace_count"] = 1
        return benchmark(*args, **{**kwargs, **settings})

    return run


class _TritonFinder:
    """Import hook that replaces Triton's benchmark functions, which ask a driver, once they are imported."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """Return the module's own specification with a loader that replaces the functions after it."""
        if name != _TRITON:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_replace(module: ModuleType) -> None:
                execute(module)
                _time_nothing(module)

            spec.loader.exec_module = execute_and_replace  # type: ignore[method-assign]
        return spec


def _time_nothing(testing: ModuleType) -> None:
    testing.do_bench = testing.do_bench_cudagraph = _do_bench  # type: ignore[attr-defined]


def _do_bench(
    fn: Callable[[], object], *_: object, quantiles: Sequence[float] | None = None,
    return_mode: str = "mean", **__: object,
) -> Any:  # fmt: skip
    """Run a function once, in place of Triton's ``do_bench``."""
    fn()
    if quantiles is not None:
        return [UnknownTime() for _ in quantiles] if len(quantiles) > 1 else UnknownTime()
    return [UnknownTime()] if return_mode == "all" else UnknownTime()
