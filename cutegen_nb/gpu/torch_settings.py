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


_BACKENDS: dict[str, Any] = {
    "all backends": torch.backends,
    "cuda.matmul": _CUDA.matmul,
    "cudnn": torch.backends.cudnn,
    "cudnn.conv": getattr(torch.backends.cudnn, "conv", None),
    "cudnn.rnn": getattr(torch.backends.cudnn, "rnn", None),
    "mkldnn": torch.backends.mkldnn,
    "mkldnn.matmul": getattr(torch.backends.mkldnn, "matmul", None),
}
_PRECISIONS = {
    f"fp32_precision of {name}": owner
    for name, owner in _BACKENDS.items()
    if hasattr(owner, "fp32_precision")
}
"""PyTorch's second way (2.9 on) to say the same. Once a line has used it, reading the first way raises."""


def settings() -> dict[str, Any]:
    """All of them as they are now; None for one that PyTorch refuses to read."""
    now = {name: _read(read) for name, (read, _) in _SETTINGS.items()}
    return now | {name: owner.fp32_precision for name, owner in _PRECISIONS.items()}


def restore(before: dict[str, Any]) -> tuple[Finding, ...]:
    """Put global settings back; a flag for each that the candidate changed."""
    findings = []
    kept = {name: way for name, way in _SETTINGS.items() if before[name] is not None}
    if any(_read(read) is None for read, _ in kept.values()):
        for name, owner in _PRECISIONS.items():
            value = owner.fp32_precision
            if value != before[name]:
                owner.fp32_precision = before[name]
                findings.append(_changed(name, value, before[name]))
    for name, (read, write) in kept.items():
        value = read()
        if value != before[name]:
            write(before[name])
            findings.append(_changed(name, value, before[name]))
    return tuple(findings)


def _read(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except RuntimeError:
        return None


def _changed(name: str, value: object, before: object) -> Finding:
    message = f"The candidate set PyTorch's {name} to {value}; put back to {before}."
    return Finding(kind="global-setting", message=message, severity=Severity.FLAG)
