"""Launch configuration and the checks by which a GPU refuses a launch.

Limits are those of the CUDA C++ Programming Guide, "Compute Capabilities"; error codes are ``cudaError_t``.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.analysis.hardware.occupancy import (
    MAX_REGISTERS_PER_THREAD,
    REGISTERS_PER_SM,
    limits_of,
    occupancy,
)
from cutegen_nb.simulator.ptx.model import Kernel
from cutegen_nb.simulator.state.device import MAX_BLOCK_DIM, MAX_GRID_DIM, MAX_THREADS_PER_BLOCK, DeviceFacts

INVALID_VALUE = 1
"""``cudaErrorInvalidValue``."""
INVALID_CONFIGURATION = 9
"""``cudaErrorInvalidConfiguration``."""
OUT_OF_RESOURCES = 701
"""``cudaErrorLaunchOutOfResources``."""
COOPERATIVE_TOO_LARGE = 720
"""``cudaErrorCooperativeLaunchTooLarge``."""
_MOST_CLUSTER_CTAS = 8
"""Most CTAs of a portable cluster: every GPU with clusters supports this size."""
_MOST_CLUSTER_CTAS_ON = {"sm_90": 16, "sm_100": 16, "sm_103": 16}
"""Most CTAs of a cluster by architecture, with the attribute for it, which the DSL sets on every kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Launch configuration of a kernel."""

    grid: tuple[int, int, int]
    """CTAs in x, y, z."""
    block: tuple[int, int, int]
    """Threads in x, y, z."""
    dynamic_smem_bytes: int
    """Dynamic shared memory of a CTA in bytes."""
    cluster: tuple[int, int, int] = (1, 1, 1)
    """CTAs of a cluster in x, y, z."""
    registers: int = 0
    """Registers per thread as compiled; 0 where not known."""
    cooperative: bool = False
    """True if all CTAs have to be resident at once, so that they may wait for one another."""

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def ctas(self) -> int:
        """CTAs of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Error with which a GPU refuses a launch."""

    code: int
    """``cudaError_t`` that the launch returns."""
    message: str
    """Sentences with the size asked for, the limit, and the next step."""


def refusal(kernel: Kernel, launch: Launch, device: DeviceFacts | None) -> Refusal | None:
    """Return the error with which a device refuses a launch; None if it accepts the launch.

    If ``device`` is None, the limits of the kernel's architecture hold and a cooperative launch always fits.
    For an architecture without known limits only the extents are checked.
    """
    what = f"Kernel {kernel.name}"
    architecture = kernel.architecture if device is None else device.architecture
    found = _by_extents(what, launch, architecture) or _by_memory(what, kernel, launch, architecture)
    if found is not None:
        return found
    smem_bytes = kernel.static_smem_bytes + launch.dynamic_smem_bytes
    if limits_of(architecture) is None:
        return None
    held = occupancy(architecture, threads=launch.threads, registers=launch.registers, smem_bytes=smem_bytes)
    if launch.registers > MAX_REGISTERS_PER_THREAD or not held.active_ctas:
        return Refusal(
            code=OUT_OF_RESOURCES,
            message=f"{what}: {launch.registers} registers × {launch.threads} threads are more than the "
            f"{REGISTERS_PER_SM:,} of a multiprocessor: too many resources requested for launch. Use "
            "fewer threads in "
            "a CTA, or smaller tiles in registers.",
        )
    if device is not None and launch.cooperative and launch.ctas > held.active_ctas * device.sm_count:
        return Refusal(
            code=COOPERATIVE_TOO_LARGE,
            message=f"{what}: a cooperative launch of {launch.ctas} CTAs; {held.active_ctas} on each of "
            f"{device.sm_count} "
            "multiprocessors are resident at once. Launch fewer and loop over the rest.",
        )
    return None


def _by_extents(what: str, launch: Launch, architecture: str) -> Refusal | None:
    message = ""
    most_ctas = _MOST_CLUSTER_CTAS_ON.get(architecture.rstrip("af"), _MOST_CLUSTER_CTAS)
    if min(*launch.grid, *launch.block, *launch.cluster) < 1:
        message = (
            f"{what}: grid {launch.grid}, block {launch.block} and cluster {launch.cluster} must have no "
            "zero; a "
            "GPU refuses such a launch. Skip the launch when there is nothing to do."
        )
    elif launch.threads > MAX_THREADS_PER_BLOCK:
        message = (
            f"{what}: {launch.threads} threads in a CTA; a GPU allows {MAX_THREADS_PER_BLOCK}. Use fewer."
        )
    elif any(size > most for size, most in zip(launch.block, MAX_BLOCK_DIM, strict=True)):
        message = f"{what}: block {launch.block}; a GPU allows {MAX_BLOCK_DIM} at most. Use fewer threads."
    elif any(size > most for size, most in zip(launch.grid, MAX_GRID_DIM, strict=True)):
        message = (
            f"{what}: grid {launch.grid}; a GPU allows {MAX_GRID_DIM} at most. Put the long extent into x."
        )
    elif any(size % step for size, step in zip(launch.grid, launch.cluster, strict=True)):
        message = f"{what}: grid {launch.grid} is no multiple of cluster {launch.cluster}. Round the grid up."
    elif launch.cluster[0] * launch.cluster[1] * launch.cluster[2] > most_ctas:
        message = f"{what}: cluster {launch.cluster}; {architecture} has {most_ctas} CTAs at most."
    return Refusal(code=INVALID_CONFIGURATION, message=message) if message else None


def _by_memory(what: str, kernel: Kernel, launch: Launch, architecture: str) -> Refusal | None:
    limits = limits_of(architecture)
    smem_bytes = kernel.static_smem_bytes + launch.dynamic_smem_bytes
    if limits is None or smem_bytes <= limits.smem_per_cta_bytes:
        return None
    return Refusal(
        code=INVALID_VALUE,
        message=f"{what}: {smem_bytes:,} bytes of shared memory ({launch.dynamic_smem_bytes:,} dynamic); "
        "a CTA on "
        f"{limits.architecture} has {limits.smem_per_cta_bytes:,} at most. Use smaller tiles or fewer "
        "stages.",
    )
