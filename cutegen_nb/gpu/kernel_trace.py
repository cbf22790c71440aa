"""Which kernels one call really launched, as the CUDA profiler saw them."""

from __future__ import annotations

from collections.abc import Callable

import torch

_NOT_THE_CANDIDATES = ("at::", "cublas", "cutlass::", "cudnn", "memcpy", "memset", "nvjet", "triton_")
"""Parts of the names of PyTorch's, the libraries' and the driver's own kernels, in lower case."""


def kernels_launched(call: Callable[[], object]) -> tuple[str, ...] | None:
    """Names of the kernels of `call` that are not a library's, or None where the profiler records nothing.

    An operation of PyTorch's own runs in the same trace, to tell "nothing was launched" from "nothing is
    recorded on this machine".
    """
    activity = torch.profiler.ProfilerActivity.CUDA
    with torch.profiler.profile(activities=[activity], acc_events=True) as profile:
        call()
        torch.ones(64, device="cuda").mul_(2.0)
        torch.cuda.synchronize()
    names = [event.name for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    if not names:
        return None
    return tuple(name for name in names if not any(part in name.lower() for part in _NOT_THE_CANDIDATES))
