"""Roofline zones: a problem below both ridge points, between them, or above both.

The zones are those of cuPilot's roofline prophet. The ridge points of the CUDA cores and of the tensor cores,
at the problem's precision, separate memory from middle and middle from compute. The FLOPs are those of the
reference's graph, or of a kernel whose algebra needs far fewer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cutegen_nb.analysis.figures.quantity import figure
from cutegen_nb.analysis.hardware.roofline import peak_at_precision
from cutegen_nb.core.device import Device
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.strategy import Bound


class ZoneName(StrEnum):
    """Zones of the roofline, by increasing arithmetic intensity."""

    MEMORY = "memory"
    MIDDLE = "middle"
    COMPUTE = "compute"


_MEANS = {
    ZoneName.MEMORY: "bandwidth sets its floor whichever cores compute: move few bytes, and those whole",
    ZoneName.MIDDLE: "arithmetic sets its floor on CUDA cores, bandwidth on tensor cores",
    ZoneName.COMPUTE: "arithmetic sets its floor even on the fastest cores: keep these busy",
}
"""Consequence of each zone for a kernel, in words."""
_BOUNDS = {
    ZoneName.MEMORY: frozenset({Bound.MEMORY, Bound.LATENCY}),
    ZoneName.MIDDLE: frozenset(Bound),
    ZoneName.COMPUTE: frozenset({Bound.COMPUTE, Bound.LATENCY}),
}
"""Limits that strategies of each zone answer. Latency limits a kernel in any of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedFlops:
    """FLOPs that a kernel of the session was counted to do."""

    flops: int
    """Floating-point operations of one call at full size; a multiply-add counts two."""
    kernel: str
    """Revision of the kernel: ``r3``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """Zone of a problem, with its intensity and the two ridge points of its precision."""

    name: ZoneName
    """Zone that the problem lies in."""
    intensity: float
    """Arithmetic intensity in FLOP/B: the fewest FLOPs known ÷ the least bytes, at full size."""
    cuda_ridge: float
    """Intensity in FLOP/B from which CUDA cores are the limit."""
    tensor_ridge: float
    """Intensity in FLOP/B from which tensor cores are the limit; equal to `cuda_ridge` where tensor cores do
    not serve this precision."""
    after: str = ""
    """Revision of the kernel whose algebra set the FLOPs; empty where they are the reference's."""

    @property
    def bounds(self) -> frozenset[Bound]:
        """Limits that strategies of this zone answer."""
        return _BOUNDS[self.name]

    def text(self) -> str:
        """Describe the zone in a sentence."""
        ridges = f"ridge point of CUDA cores {figure(self.cuda_ridge)}"
        if self.tensor_ridge > self.cuda_ridge:
            ridges += f", of tensor cores {figure(self.tensor_ridge)} FLOP/B"
        else:
            ridges += " FLOP/B"
        after = f", after the algebra of {self.after}" if self.after else ""
        return (
            f"Zone {self.name.value}{after}: {figure(self.intensity)} FLOP/B at full size ({ridges}); "
            f"{_MEANS[self.name]}."
        )


def zone(facts: ProblemFacts, device: Device, fewest: CountedFlops | None = None) -> Zone | None:
    """Return the zone of a problem on a device, by the lesser of the reference's FLOPs and `fewest`.

    None where the device states no bandwidth or no peak for the problem's precision, or the problem moves no
    bytes.
    """
    bandwidth = device.bandwidth_bytes_per_s
    cuda = peak_at_precision(facts.dtype, device, "cuda")
    if not bandwidth or not cuda or not facts.full.least_bytes:
        return None
    # Where tensor cores do not serve the precision their peak is 0, and the middle zone becomes empty.
    tensor = max(cuda, peak_at_precision(facts.dtype, device, "tensor"))
    counted = fewest if fewest and fewest.flops < facts.full.flops else None
    intensity = (counted.flops if counted else facts.full.flops) / facts.full.least_bytes
    return Zone(
        # Ridge point = peak ÷ bandwidth, in FLOP/B.
        name=_name(intensity, cuda / bandwidth, tensor / bandwidth),
        intensity=intensity,
        cuda_ridge=cuda / bandwidth,
        tensor_ridge=tensor / bandwidth,
        after=counted.kernel if counted else "",
    )


def _name(intensity: float, cuda_ridge: float, tensor_ridge: float) -> ZoneName:
    if intensity < cuda_ridge:
        return ZoneName.MEMORY
    return ZoneName.MIDDLE if intensity < tensor_ridge else ZoneName.COMPUTE
