"""GPUs that a time can be estimated for: data sheet, latencies, issue rates of the pipes."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace

from cutegen_nb.analysis.hardware.devices import SHEETS, DataSheet, find_data_sheet, total_clocks_per_s
from cutegen_nb.core.device import SIMULATED_SUFFIX, Device, DeviceKind
from cutegen_nb.core.errors import UsageError

DEFAULT_TARGET = "H200"
"""GPU that times are estimated for on a machine without one."""
_L2_BYTES_PER_CLOCK_PER_SM = 32.0
"""L2 bytes a clock of each multiprocessor where no figure is published for the product: half of the 64 bytes
that its port to the L2 takes. Published: 47 on the A100 (white paper), 34 on the H800 (Luo et al. 2024)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLatency:
    """Clocks of a dependent load by the level that answers it, on a GPU that does nothing else."""

    l1: float
    """L1 hit."""
    l2: float
    """L2 hit."""
    dram: float
    """Miss in both caches."""


_LATENCIES = {
    "sm_80": MemoryLatency(l1=37.9, l2=261.5, dram=466.3),
    "sm_89": MemoryLatency(l1=43.4, l2=273.0, dram=541.5),
    "sm_90": MemoryLatency(l1=40.7, l2=263.0, dram=478.8),
}
"""Pointer-chase latencies of A100, RTX 4090 and H100 PCIe: Luo et al. 2024, arXiv 2402.13499,
table IV, as recalled: not checked against the paper."""
_NEAREST = {"sm_86": "sm_89", "sm_87": "sm_80", "sm_120": "sm_89", "sm_121": "sm_89"}
"""Architectures without published figures here, and the one whose figures stand in: GDDR boards for GDDR
boards. All others take those of sm_90."""

_CLOCKS_OF_ONE_SM = {
    # A multiprocessor issues 4 warps a clock. Clocks of a warp instruction = 32 ÷ results a clock (CUDA C++
    # Programming Guide, "Arithmetic Instructions", throughput of native instructions).
    "fp32": 1 / 4,
    "fp16": 1 / 4,
    "fp64": 1 / 2,
    "alu": 1 / 2,
    "integer-multiply": 1 / 2,
    "special": 2.0,
    "convert": 1 / 2,
    "warp": 1.0,
    "load": 1.0,
    "store": 1.0,
    "atomic": 1.0,
    "async-copy": 1.0,
}
"""Clocks that a multiprocessor's pipe takes for one warp instruction, on compute capability 9.0."""
_OTHER_CLOCKS = {
    "sm_80": {"fp32": 1 / 2},
    "sm_86": {"fp64": 16.0, "fp16": 1 / 4},
    "sm_89": {"fp64": 16.0, "fp16": 1 / 4},
    "sm_120": {"fp64": 16.0, "fp16": 1 / 4},
}
"""Differences of other architectures from `_CLOCKS_OF_ONE_SM`, from the same table."""


_MMA_SYNC_FRACTION = {"sm_90": 0.63}
"""Share of a peak stated for ``wgmma`` that ``mma`` reaches on Hopper: 62.9 % (Luo et al. 2024, as
recalled: not checked against the paper)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateTarget:
    """GPU that a time is estimated for."""

    sheet: DataSheet
    """Figures that its maker states."""
    latency: MemoryLatency
    """Clocks of a load, by level."""

    @property
    def name(self) -> str:
        """Product with its maker: ``NVIDIA H200``."""
        return f"NVIDIA {self.sheet.product}"

    @property
    def device(self) -> Device:
        """The GPU as a device, for its roofs."""
        return Device(
            kind=DeviceKind.GPU, name=self.name, architecture=self.sheet.architecture,
            bandwidth_bytes_per_s=self.sheet.bandwidth_bytes_per_s, peak_flops=dict(self.sheet.peak_flops),
            source=self.sheet.source, sm_count=self.sheet.sm_count, l2_bytes=self.sheet.l2_bytes,
            clock_hz=self.sheet.clock_hz, l2_bandwidth_bytes_per_s=self.sheet.l2_bandwidth_bytes_per_s,
            l2_source=self.sheet.l2_source,
        )  # fmt: skip

    @property
    def sms(self) -> int:
        """Multiprocessors."""
        return self.sheet.sm_count

    @property
    def clock_hz(self) -> float:
        """Boost clock; where no sheet states it, the one that the fp32 peak implies."""
        clocks = total_clocks_per_s(
            self.sheet.architecture, sm_count=self.sheet.sm_count, clock_hz=self.sheet.clock_hz,
            peak_f32=self.sheet.peak_flops.get("cuda.f32", 0.0),
        )  # fmt: skip
        return clocks / self.sheet.sm_count

    @property
    def l2_bandwidth_bytes_per_s(self) -> float:
        """L2 read bandwidth, stated or assumed (`_L2_BYTES_PER_CLOCK_PER_SM`)."""
        assumed = _L2_BYTES_PER_CLOCK_PER_SM * self.sms * self.clock_hz
        return self.sheet.l2_bandwidth_bytes_per_s or assumed

    @property
    def l2_bytes(self) -> int:
        """L2 capacity in bytes; 50 MiB, that of a GH100, where no sheet states it."""
        return self.sheet.l2_bytes or 50 << 20

    @property
    def mma_sync_fraction(self) -> float:
        """Share of the tensor cores' peak that products of one warp (``mma.sync``) reach."""
        return _MMA_SYNC_FRACTION.get(self.sheet.architecture, 1.0)

    def pipe_clocks(self, pipe: str) -> float:
        """Return the clocks of a multiprocessor for one warp instruction of a pipe; 0 for an unknown one."""
        special = _OTHER_CLOCKS.get(self.sheet.architecture, {})
        return special.get(pipe, _CLOCKS_OF_ONE_SM.get(pipe, 0.0))


def find_target(name: str) -> EstimateTarget:
    """Return the GPU of a name such as ``H200`` or ``RTX4090``. Raises UsageError with the known names."""
    # People write a product's name without its blanks, and with its maker or not.
    wanted = _plain(name)
    sheet = next((one for one in SHEETS if _plain(one.product) == wanted), None) or find_data_sheet(name)
    if sheet is None:
        known = ", ".join(one.product for one in SHEETS)
        raise UsageError(f"no data sheet is known for the GPU {name!r}; known are {known}")
    return EstimateTarget(sheet=sheet, latency=_latency(sheet.architecture))


@functools.lru_cache(maxsize=4096)  # every table of a session asks for each of its rounds
def target_named_in(text: str) -> EstimateTarget | None:
    """Return the GPU whose name stands in a text, such as the reason of a comparison; None for none."""
    named = [one for one in SHEETS if re.search(rf"NVIDIA {re.escape(one.product)}(?!\w)", text)]
    sheet = max(named, key=lambda one: len(one.product), default=None)
    return EstimateTarget(sheet=sheet, latency=_latency(sheet.architecture)) if sheet else None


def target_of(device: Device) -> EstimateTarget:
    """Return the target of a session that named none: the GPU of its figures, else the default."""
    is_known = find_data_sheet(device.gpu_name) is not None
    return find_target(device.gpu_name if is_known else DEFAULT_TARGET)


def with_figures(device: Device, target: EstimateTarget | None = None) -> Device:
    """Give the simulator the figures of the GPU that times are estimated for; a real GPU keeps its own."""
    if device.kind is DeviceKind.GPU:
        return device
    gpu = (target or find_target(DEFAULT_TARGET)).device
    return replace(gpu, kind=device.kind, name=gpu.name + SIMULATED_SUFFIX, architecture=device.architecture)


def _plain(name: str) -> str:
    return "".join(name.lower().removeprefix("nvidia").split())


def _latency(architecture: str) -> MemoryLatency:
    return _LATENCIES[_NEAREST.get(architecture, architecture if architecture in _LATENCIES else "sm_90")]
