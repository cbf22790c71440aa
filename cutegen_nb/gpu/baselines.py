"""What a candidate's speed is compared with: the reference as it is, and compiled by PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from cutegen_nb.core.evaluation import Finding, Severity

Call = Callable[..., Any]
"""Takes the problem's inputs."""


_COMPILED = "torch.compile"
_CONFIGURATIONS = ("torch._dynamo.config", "torch._inductor.config")

Configuration = dict[str, dict[str, Any]]
"""Settings of PyTorch's compiler, by module."""


def configuration(names: Sequence[str]) -> Configuration:
    """How PyTorch's compiler is set up, where one of the baselines needs it: it takes seconds to import."""
    if _COMPILED not in names:
        return {}
    return {name: importlib.import_module(name).get_config_copy() for name in _CONFIGURATIONS}


def put_back(before: Configuration) -> tuple[Finding, ...]:
    """Set PyTorch's compiler up as it was; a flag where a candidate had changed it."""
    changed = []
    for module_name, kept in before.items():
        module = importlib.import_module(module_name)
        now = module.get_config_copy()
        for name, value in kept.items():
            if now.get(name) != value:
                setattr(module, name, value)
                changed.append(f"{module_name.removeprefix('torch._')}.{name}")
    if before:
        torch.compiler.set_stance("default")
    if not changed:
        return ()
    message = f"The candidate changed how PyTorch compiles: {', '.join(changed[:5])}; put back."
    return (Finding(kind="global-setting", message=message, severity=Severity.FLAG),)


def prepare(
    names: Sequence[str], reference: torch.nn.Module, given: list[Any], before: Configuration
) -> tuple[dict[str, Call], tuple[Finding, ...]]:
    """Baselines ready to be called (compiled already), and a flag for each that this machine cannot make.

    `before` is how PyTorch's compiler was set up when no candidate had been imported.
    """
    calls: dict[str, Call] = {}
    failures: list[Finding] = list(put_back(before))
    for name in names:
        if name == "eager":
            calls[name] = reference
            continue
        try:
            calls[name] = _compiled(reference, given)
        except (RuntimeError, ImportError, OSError, AttributeError) as error:
            message = f"Baseline {name} could not be made: {type(error).__name__}: {str(error)[:200]}"
            failures.append(Finding(kind="no-baseline", message=message, severity=Severity.FLAG))
    return calls, tuple(failures)


def _compiled(reference: torch.nn.Module, given: list[Any]) -> Call:
    # In this process: compile workers would be forked from one that holds a CUDA context.
    torch._inductor.config.compile_threads = 1  # noqa: SLF001 - the only name PyTorch gives it
    compiled: Call = torch.compile(reference)
    compiled(*given)
    torch.cuda.synchronize()
    return compiled
