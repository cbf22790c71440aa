"""What a candidate runs on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DeviceKind(StrEnum):
    """Real or simulated."""

    GPU = "gpu"
    SIMULATOR = "simulator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU, or the architecture the simulator stands for, with the ceilings a roofline needs."""

    kind: DeviceKind
    """Real or simulated."""
    name: str
    """``NVIDIA H200``; for the simulator the GPU whose ceilings are drawn."""
    architecture: str
    """As the compiler takes it: ``sm_80``, ``sm_90a``."""
    bandwidth_bytes_per_s: float
    """DRAM, read and write together."""
    peak_flops: dict[str, float]
    """Dense FLOP/s by ``pipe.type``: ``cuda.f32``, ``tensor.f16``."""
    source: str
    """Where the two above come from: a data sheet by name, or ``measured`` with the date."""
    driver: str = ""
    """Driver version of a real GPU."""
    sm_count: int = 0
    """Streaming multiprocessors; 0 when unknown."""
    l2_bytes: int = 0
    """L2 size; 0 when unknown."""
    uuid: str = ""
    """A real GPU's own name, as the driver gives it."""
    clock_hz: float = 0.0
    """Boost clock of the multiprocessors; 0 when unknown."""
    l2_bandwidth_bytes_per_s: float = 0.0
    """What the L2 can read; 0 where no source states it, and then no roof is drawn for it."""
    l2_source: str = ""
    """Where that comes from; empty without it."""
