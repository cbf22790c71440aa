"""Which of three zones a problem lies in: below both ridge points, between them, above both.

The zones are those of cuPilot's roofline prophet: the ridge points of the CUDA cores and of the tensor cores
at the problem's precision part memory from middle and middle from compute.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cutegen_nb.analysis.quantity import figure
from cutegen_nb.analysis.roofline import peak_at_precision
from cutegen_nb.core.device import Device
from cutegen_nb.core.problem import ProblemFacts


class ZoneName(StrEnum):
    """Where a problem lies between the ridge points."""

    MEMORY = "memory"
    MIDDLE = "middle"
    COMPUTE = "compute"


_MEANS = {
    ZoneName.MEMORY: "bandwidth sets its floor whichever cores compute: move few bytes, and those whole",
    ZoneName.MIDDLE: "arithmetic sets its floor on CUDA cores, bandwidth on tensor cores",
    ZoneName.COMPUTE: "arithmetic sets its floor even on the fastest cores: keep these busy",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A problem between the two ridge points of its precision."""

    name: ZoneName
    """Memory, middle or compute."""
    intensity: float
    """The problem's FLOPs ÷ least bytes at full size."""
    cuda_ridge: float
    """FLOP a byte from which CUDA cores are the limit."""
    tensor_ridge: float
    """The same for tensor cores; equal to `cuda_ridge` where they do not serve this precision."""

    def text(self) -> str:
        """The zone in a sentence."""
        ridges = f"ridge point of CUDA cores {figure(self.cuda_ridge)}"
        if self.tensor_ridge > self.cuda_ridge:
            ridges += f", of tensor cores {figure(self.tensor_ridge)} FLOP/B"
        else:
            ridges += " FLOP/B"
        return (
            f"Zone {self.name.value}: {figure(self.intensity)} FLOP/B at full size ({ridges}); "
            f"{_MEANS[self.name]}."
        )


def zone(facts: ProblemFacts, device: Device) -> Zone | None:
    """The zone of a problem on a device; None where the device states no bandwidth or no peak for it."""
    bandwidth = device.bandwidth_bytes_per_s
    cuda = peak_at_precision(facts.dtype, device, "cuda")
    if not bandwidth or not cuda or not facts.full.least_bytes:
        return None
    tensor = max(cuda, peak_at_precision(facts.dtype, device, "tensor"))
    intensity = facts.full.flops / facts.full.least_bytes
    return Zone(
        name=_name(intensity, cuda / bandwidth, tensor / bandwidth),
        intensity=intensity,
        cuda_ridge=cuda / bandwidth,
        tensor_ridge=tensor / bandwidth,
    )


def _name(intensity: float, cuda_ridge: float, tensor_ridge: float) -> ZoneName:
    if intensity < cuda_ridge:
        return ZoneName.MEMORY
    return ZoneName.MIDDLE if intensity < tensor_ridge else ZoneName.COMPUTE
