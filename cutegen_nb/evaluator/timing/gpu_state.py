"""GPU clocks, temperature, power and throttling reasons, read before and after a measurement.

Clocks are not locked: locking needs root and changes the machine for everybody. They are logged, to tell a
slow run from a slow kernel.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from cutegen_nb.core.timing import Clocks

_SLOWING = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal limit",
    0x40: "hardware thermal limit",
    0x80: "power brake",
}
"""Bits of NVML's clocks event reasons that cost speed (nvml.h, "nvmlClocksEventReasons")."""
_MILLI = 1e-3
"""Watts in a milliwatt, NVML's unit of power."""


def read() -> Clocks | None:
    """Read the state of the current GPU; None where NVML's Python package is missing or gives no answer."""
    try:
        import pynvml  # noqa: PLC0415 - in the extra "gpu"
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        return _read(pynvml)
    except pynvml.NVMLError:
        return None
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _read(nvml: Any) -> Clocks:
    # By UUID: CUDA's device numbers (CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER) need not be NVML's.
    uuid = f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"
    handle = nvml.nvmlDeviceGetHandleByUUID(uuid.encode())
    reasons = int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
    return Clocks(
        sm_mhz=int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
        memory_mhz=int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
        temperature_c=int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        power_w=float(nvml.nvmlDeviceGetPowerUsage(handle)) * _MILLI,
        slowed_by=tuple(name for bit, name in _SLOWING.items() if reasons & bit),
    )
