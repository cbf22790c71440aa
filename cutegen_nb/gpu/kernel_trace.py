"""Which kernels one call really launched, and how long they ran, as the CUDA profiler saw them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

_NOT_THE_CANDIDATES = ("at::", "cublas", "cutlass::", "cudnn", "memcpy", "memset", "nvjet", "triton_")
"""Parts of the names of PyTorch's, the libraries' and the driver's own kernels, in lower case."""
_NO_COMPUTING = ("memcpy", "memset", "fillfunctor", "copy_kernel", "catarray")
"""Of those, the ones that allocate, fill, move or join: a candidate may do that through PyTorch."""
_US = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTrace:
    """One call on every stream."""

    names: tuple[str, ...]
    """Kernels that are not a library's, in order."""
    span_ms: float
    """From the start of the first kernel of the call to the end of its last, whatever its stream."""
    own_ms: float
    """Sum of the durations of those kernels."""
    library: tuple[str, ...]
    """Kernels of PyTorch and of libraries in the same call that compute something."""
    library_ms: float
    """Sum of their durations."""


def trace_call(call: Callable[[], object]) -> KernelTrace | None:
    """The kernels of `call`, or None where the profiler records nothing.

    An operation of PyTorch's own runs in the same trace, after the call's have ended, to tell "nothing was
    launched" from "nothing is recorded on this machine".
    """
    activity = torch.profiler.ProfilerActivity.CUDA
    with torch.profiler.profile(activities=[activity], acc_events=True) as profile:
        call()
        torch.cuda.synchronize()
        torch.zeros(64, device="cuda")  # a fill, which counts as no computing
        torch.cuda.synchronize()
    events = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    if not events:
        return None
    own = [event for event in events if not _named(event.name, _NOT_THE_CANDIDATES)]
    library = [
        event
        for event in events
        if _named(event.name, _NOT_THE_CANDIDATES) and not _named(event.name, _NO_COMPUTING)
    ]
    first = min((event.time_range.start for event in own), default=0.0)
    last = max((event.time_range.end for event in own), default=0.0)
    return KernelTrace(
        names=tuple(event.name for event in own),
        span_ms=(last - first) * _US,
        own_ms=_total_ms(own),
        library=tuple(event.name for event in library),
        library_ms=_total_ms(library),
    )


def _named(name: str, parts: tuple[str, ...]) -> bool:
    return any(part in name.lower() for part in parts)


def _total_ms(events: list[Any]) -> float:
    return sum(event.time_range.elapsed_us() for event in events) * _US
