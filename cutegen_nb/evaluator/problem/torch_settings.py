"""Global settings of PyTorch that change the results or the speed of a reference.

A candidate that switches TF32 on gives the reference the same error as itself. A candidate that has PyTorch
fill all memory it allocates, or that switches fused attention off, slows the baseline down. Every setting is
restored after the candidate's code has run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import deterministic

from cutegen_nb.core.finding import Finding, Severity

_Setting = tuple[Callable[[], Any], Callable[[Any], Any]]
"""Getter and setter of a setting."""


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
"""Getter and setter by name, as messages call the setting."""


_BACKENDS: dict[str, Any] = {
    "all backends": torch.backends,
    "cuda.matmul": _CUDA.matmul,
    "cudnn": torch.backends.cudnn,
    "cudnn.conv": getattr(torch.backends.cudnn, "conv", None),
    "cudnn.rnn": getattr(torch.backends.cudnn, "rnn", None),
    "mkldnn": torch.backends.mkldnn,
    "mkldnn.matmul": getattr(torch.backends.mkldnn, "matmul", None),
}
"""Objects with an ``fp32_precision`` in PyTorch 2.9 and later, by name."""
_PRECISIONS = {
    f"fp32_precision of {name}": owner
    for name, owner in _BACKENDS.items()
    if hasattr(owner, "fp32_precision")
}
"""Owners of the settings of float32 precision that PyTorch 2.9 introduced. After one of them has been set,
reading the older settings (``allow_tf32``, matmul precision) raises RuntimeError."""


def settings() -> dict[str, Any]:
    """Return the present value of every setting; None for a setting that PyTorch refuses to read."""
    now = {name: _read(read) for name, (read, _) in _SETTINGS.items()}
    return now | {name: owner.fp32_precision for name, owner in _PRECISIONS.items()}


def restore(before: dict[str, Any]) -> tuple[Finding, ...]:
    """Restore the settings to `before`; return a flag for each that the candidate changed."""
    findings = []
    kept = {name: way for name, way in _SETTINGS.items() if before[name] is not None}
    # The newer settings first: the older ones cannot be read until these are restored.
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
