"""CTAs of a launch that a GPU holds at once, and the rounds in which it works through the grid."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cutegen_nb.analysis.estimate.targets import EstimateTarget
from cutegen_nb.analysis.hardware.occupancy import WARP_THREADS, limits_of, occupancy
from cutegen_nb.core.profile import LaunchProfile

_FEW_WAVES = 4
"""Waves up to which the last one ends as a whole; in longer runs CTAs no longer start together."""
_L1_BEYOND_SMEM_BYTES = 28 << 10
"""Bytes of a multiprocessor's L1 that shared memory cannot take: 192 − 164 KiB on the A100, 256 − 228 KiB
on the H100, 128 − 100 KiB on Ada (white papers)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Residency:
    """Placement of one launch on one GPU."""

    ctas: int
    """CTAs of the grid."""
    ctas_per_sm: int
    """CTAs that one multiprocessor can hold."""
    sms: int
    """Multiprocessors of the GPU."""
    warps_per_cta: int
    """Warps of a CTA."""
    l1_bytes: int
    """L1 that the CTAs of one multiprocessor leave each other, after their shared memory."""

    @property
    def resident(self) -> int:
        """CTAs that run at once on the whole GPU."""
        return min(self.ctas, self.sms * self.ctas_per_sm)

    @property
    def resident_per_sm(self) -> int:
        """CTAs that run at once on the fullest multiprocessor."""
        return min(self.ctas_per_sm, math.ceil(self.ctas / self.sms))

    @property
    def busy_sms(self) -> int:
        """Multiprocessors that get a CTA at all."""
        return min(self.ctas, self.sms)

    @property
    def waves(self) -> float:
        """Lifetimes of a CTA that pass one after another."""
        exact = self.ctas / (self.sms * self.ctas_per_sm)
        whole = math.ceil(exact)
        return exact + (whole - exact) * min(1.0, _FEW_WAVES / whole)

    @property
    def imbalance(self) -> float:
        """Work of the fullest multiprocessor ÷ the mean of all multiprocessors of the GPU; 1 at best."""
        # Within one wave an SM has whole CTAs; over several waves, free slots are filled as they appear.
        if self.ctas <= self.sms * self.ctas_per_sm:
            return math.ceil(self.ctas / self.sms) * self.sms / self.ctas
        exact = self.ctas / (self.sms * self.ctas_per_sm)
        return self.waves / exact


def residency(launch: LaunchProfile, target: EstimateTarget) -> Residency:
    """Return the placement of a launch; a CTA too large for the target gets a multiprocessor of its own."""
    threads = math.prod(launch.block)
    registers = launch.resources.registers if launch.resources else 0
    smem_bytes = launch.dynamic_smem_bytes + launch.static_smem_bytes
    architecture = target.sheet.architecture
    fitting = occupancy(architecture, threads=threads, registers=registers, smem_bytes=smem_bytes).active_ctas
    held = limits_of(architecture)
    assert held is not None  # `occupancy` refuses an architecture without limits
    ctas_per_sm = max(fitting, 1)
    total = held.smem_bytes + _L1_BEYOND_SMEM_BYTES
    return Residency(
        ctas=max(math.prod(launch.grid), 1),
        ctas_per_sm=ctas_per_sm,
        sms=target.sms,
        warps_per_cta=math.ceil(threads / WARP_THREADS),
        l1_bytes=max(total - ctas_per_sm * smem_bytes, 0),
    )
