"""Benchmark functions of the DSL, made to run once: without a clock, a repeat tells nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

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


def _once(benchmark: Callable[..., Any], settings: Mapping[str, object]) -> Callable[..., Any]:
    @functools.wraps(benchmark)
    def run(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("workspace_generator") is not None:
            kwargs["workspace_count"] = 1
        return benchmark(*args, **{**kwargs, **settings})

    return run
