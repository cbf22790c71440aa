"""PyTorch's global settings that change what a reference computes, or how fast.

A candidate that switches TF32 on makes the reference err as it does itself; one that has PyTorch fill all
memory it allocates, or switches the fused attention off, makes the baseline slow. Each is put back after the
candidate's code has run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import deterministic

from cutegen_nb.core.evaluation import Finding, Severity

_Setting = tuple[Callable[[], Any], Callable[[Any], Any]]
"""How to read it and how to write it."""


def _of(owner: Any, name: str) -> _Setting:
    return lambda: getattr(owner, name), lambda value: setattr(owner, name, value)


def _autocast(kind: str) -> _Setting:
    return lambda: torch.is_autocast_enabled(kind), lambda value: torch.set_autocast_enabled(kind, value)


def _determinism() -> tuple[bool, bool]:
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


_CUDA = torch.backends.cuda
_SETTINGS: dict[str, _Setting] = {
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "float32 matmul precision": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "cudnn TF32": _of(torch.backends.cudnn, "allow_tf32"),
    "cudnn": _of(torch.backends.cudnn, "enabled"),
    "cudnn benchmarking": _of(torch.backends.cudnn, "benchmark"),
    "cudnn determinism": _of(torch.backends.cudnn, "deterministic"),
    "reduced float16 sums": _of(_CUDA.matmul, "allow_fp16_reduced_precision_reduction"),
    "reduced bfloat16 sums": _of(_CUDA.matmul, "allow_bf16_reduced_precision_reduction"),
    "flash attention": (_CUDA.flash_sdp_enabled, _CUDA.enable_flash_sdp),
    "memory-efficient attention": (_CUDA.mem_efficient_sdp_enabled, _CUDA.enable_mem_efficient_sdp),
    "unfused attention": (_CUDA.math_sdp_enabled, _CUDA.enable_math_sdp),
    "cudnn attention": (_CUDA.cudnn_sdp_enabled, _CUDA.enable_cudnn_sdp),
    "deterministic algorithms": (
        _determinism,
        lambda value: torch.use_deterministic_algorithms(value[0], warn_only=value[1]),
    ),
    "filling of new memory": _of(deterministic, "fill_uninitialized_memory"),
    "autocast on a GPU": _autocast("cuda"),
    "autocast on the host": _autocast("cpu"),
    "torch threads": (torch.get_num_threads, torch.set_num_threads),
    "gradients": (torch.is_grad_enabled, torch.set_grad_enabled),
}


def settings() -> dict[str, Any]:
    """All of them as they are now."""
    return {name: read() for name, (read, _) in _SETTINGS.items()}


def restore(before: dict[str, Any]) -> tuple[Finding, ...]:
    """Put global settings back; a flag for each that the candidate changed."""
    findings = []
    for name, (read, write) in _SETTINGS.items():
        value = read()
        if value != before[name]:
            write(before[name])
            findings.append(
                Finding(
                    kind="global-setting",
                    message=f"The candidate set PyTorch's {name} to {value}; put back to {before[name]}.",
                    severity=Severity.FLAG,
                )
            )
    return tuple(findings)
