"""What a candidate's speed is compared with: the reference as it is, and compiled by PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from cutegen_nb.core.evaluation import Finding, Severity

Call = Callable[..., Any]
"""Takes the problem's inputs."""


def prepare(
    names: Sequence[str], reference: torch.nn.Module, given: list[Any]
) -> tuple[dict[str, Call], tuple[Finding, ...]]:
    """Baselines ready to be called (compiled already), and a flag for each that this machine cannot make."""
    calls: dict[str, Call] = {}
    failures: list[Finding] = []
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
