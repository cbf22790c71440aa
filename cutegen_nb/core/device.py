"""Devices that candidates run on: a GPU, or the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DeviceKind(StrEnum):
    """Kind of device: a GPU or the simulator."""

    GPU = "gpu"
    SIMULATOR = "simulator"


SIMULATED_SUFFIX = " (simulated)"
"""End of a simulator's name, after the GPU whose ceilings are drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU, or the architecture that the simulator stands for, with the ceilings of its roofline."""

    kind: DeviceKind
    """Kind of device."""
    name: str
    """Product name, ``NVIDIA H200``; for the simulator the GPU whose ceilings are drawn."""
    architecture: str
    """Architecture in the compiler's spelling: ``sm_80``, ``sm_90a``."""
    bandwidth_bytes_per_s: float
    """DRAM bandwidth, reads and writes together."""
    peak_flops: dict[str, float]
    """Peak dense FLOP/s by ``pipe.type``: ``cuda.f32``, ``tensor.f16``."""
    source: str
    """Source of bandwidth and peak FLOP/s: a data sheet by name, or ``measured`` with the date."""
    driver: str = ""
    """Driver version of a GPU; empty for the simulator."""
    sm_count: int = 0
    """Streaming multiprocessors; 0 when unknown."""
    l2_bytes: int = 0
    """L2 size in bytes; 0 when unknown."""
    memory_bytes: int = 0
    """Size of the GPU's memory in bytes; 0 when unknown."""
    uuid: str = ""
    """GPU UUID from the driver."""
    clock_hz: float = 0.0
    """Boost clock of the multiprocessors in Hz; 0 when unknown."""
    l2_bandwidth_bytes_per_s: float = 0.0
    """L2 read bandwidth; 0 where no source states it, and then no L2 roof is drawn."""
    l2_source: str = ""
    """Source of the L2 bandwidth; empty without it."""

    @property
    def label(self) -> str:
        """Name of what ran a kernel: ``NVIDIA H200``; ``simulator (sm_80)``, which is no GPU."""
        return f"simulator ({self.architecture})" if self.kind is DeviceKind.SIMULATOR else self.name

    @property
    def gpu_name(self) -> str:
        """Name of the GPU whose ceilings are drawn: ``A100`` for its simulator too."""
        return self.name.removesuffix(SIMULATED_SUFFIX)
