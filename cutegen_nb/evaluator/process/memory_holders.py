"""Processes that hold a GPU's memory, as NVIDIA's management library (NVML) lists them.

No CUDA context is created.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LONGEST_NAME = 80
_UNEXPLAINED_BYTES = 1 << 28
"""Bytes in use by no named process above which hidden processes are reported; a CUDA context takes more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process that holds memory of a GPU."""

    process_id: int
    """Process id in this machine or container."""
    name: str
    """Command line, or the driver's name for the process; empty where neither is known."""
    held_bytes: int | None
    """GPU memory in bytes; None where the driver does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMemory:
    """Memory of one GPU at the time of reading."""

    index: int
    """Number of the GPU in NVIDIA's tools."""
    used_bytes: int
    """Memory used by all processes, named or not; the driver's own reserve is not counted."""
    total_bytes: int
    """Total memory of the GPU."""
    holders: tuple[Holder, ...]
    """Processes that the driver names, the largest first."""


def read() -> tuple[GpuMemory, ...] | None:
    """Read each GPU's memory; None where nvidia-ml-py or the driver is missing or gives no answer."""
    try:
        import pynvml  # noqa: PLC0415 - in the extra "gpu"
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        return tuple(_of_gpu(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount()))
    except pynvml.NVMLError:
        return None
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def sentence(memory: GpuMemory, process_id: int) -> str:
    """Describe the memory in use and its holders; `process_id` is this process's own."""
    used = f"{_size(memory.used_bytes)} of {_size(memory.total_bytes)} in use"
    named = [_holder(holder, own=holder.process_id == process_id) for holder in memory.holders]
    known = sum(holder.held_bytes or 0 for holder in memory.holders)
    unsized = any(holder.held_bytes is None for holder in memory.holders)
    if memory.used_bytes - known > _UNEXPLAINED_BYTES and not unsized:
        named.append(
            f"{_size(memory.used_bytes - known)} by processes that the driver does not name here: "
            "a container hides those outside it, so run nvidia-smi on the host"
        )
    return f"{used}: {'; '.join(named)}" if named else f"{used}, by no process"


def _of_gpu(nvml: Any, index: int) -> GpuMemory:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    held: dict[int, int | None] = {}
    for listed in (nvml.nvmlDeviceGetComputeRunningProcesses, nvml.nvmlDeviceGetGraphicsRunningProcesses):
        for process in listed(handle):
            held[process.pid] = process.usedGpuMemory
    holders = (
        Holder(process_id=pid, name=_name(nvml, pid), held_bytes=size) for pid, size in held.items() if pid
    )
    return GpuMemory(
        index=index,
        used_bytes=int(memory.used),
        total_bytes=int(memory.total),
        holders=tuple(sorted(holders, key=lambda holder: -(holder.held_bytes or 0))),
    )


def _name(nvml: Any, process_id: int) -> str:
    with contextlib.suppress(OSError):
        command = Path(f"/proc/{process_id}/cmdline").read_bytes().replace(b"\0", b" ")
        if command.strip():
            return command.decode(errors="replace").strip()
    with contextlib.suppress(nvml.NVMLError):
        found = nvml.nvmlSystemGetProcessName(process_id)
        return found.decode(errors="replace") if isinstance(found, bytes) else str(found)
    return ""


def _holder(holder: Holder, *, own: bool) -> str:
    name = holder.name if len(holder.name) <= _LONGEST_NAME else f"{holder.name[: _LONGEST_NAME - 1]}…"
    size = "an unknown amount" if holder.held_bytes is None else _size(holder.held_bytes)
    this = ", this process itself" if own else ""
    return f"{size} by process {holder.process_id} ({name or 'no name known'}{this})"


def _size(count: int) -> str:
    """Format a number of bytes as ``1.5 GiB (1,610,612,736 bytes)``."""
    return f"{count / (1 << 30):.3g} GiB ({count:,} bytes)"
