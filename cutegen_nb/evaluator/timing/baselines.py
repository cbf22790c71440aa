"""Baselines of a timing: the reference run eagerly, and compiled by ``torch.compile``."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from cutegen_nb.core.evaluation import COMPILED, EAGER
from cutegen_nb.core.finding import Finding, Severity

Call = Callable[..., Any]
"""Callable that takes the problem's inputs."""

_CONFIGURATIONS = ("torch._dynamo.config", "torch._inductor.config")
"""Modules that hold the settings of PyTorch's compiler."""

Configuration = dict[str, dict[str, Any]]
"""Settings of PyTorch's compiler, by module."""


def configuration(names: Sequence[str]) -> Configuration:
    """Return a copy of the compiler's settings; empty unless ``torch.compile`` is among the baselines.

    The compiler takes seconds to import.
    """
    if COMPILED not in names:
        return {}
    return {name: importlib.import_module(name).get_config_copy() for name in _CONFIGURATIONS}


def restore_compiler_settings(before: Configuration) -> tuple[Finding, ...]:
    """Restore the settings of PyTorch's compiler; a flag names those that a candidate had changed."""
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
    """Make the baselines, compiled already, and a flag for each that this machine cannot make.

    `before` holds the settings of PyTorch's compiler from before a candidate was imported.
    """
    calls: dict[str, Call] = {}
    failures: list[Finding] = list(restore_compiler_settings(before))
    for name in names:
        if name == EAGER:
            calls[name] = reference
            continue
        try:
            calls[name] = compiled(reference, given)
        except (RuntimeError, ImportError, OSError, AttributeError) as error:
            message = f"Baseline {name} could not be made: {type(error).__name__}: {str(error)[:200]}"
            failures.append(Finding(kind="no-baseline", message=message, severity=Severity.FLAG))
    return calls, tuple(failures)


def compiled(reference: torch.nn.Module, given: list[Any]) -> Call:
    """Compile the reference with ``torch.compile`` and call it once on `given`.

    If that fails, compile it again without the files of the cache, which another process wrote.
    """
    inductor = torch._inductor.config  # noqa: SLF001 - the only name PyTorch gives it
    # One thread compiles in this process: workers would be forked from a process that holds a CUDA context.
    inductor.compile_threads = 1
    try:
        return _called(reference, given)
    except (RuntimeError, OSError):
        torch.compiler.reset()
        with inductor.patch(force_disable_caches=True):
            return _called(reference, given)


def _called(reference: torch.nn.Module, given: list[Any]) -> Call:
    made: Call = torch.compile(reference)
    made(*given)
    torch.cuda.synchronize()
    return made
