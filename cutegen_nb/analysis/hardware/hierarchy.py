"""Memory levels of a device as bandwidth roofs, and the bytes that a kernel moves through each.

A kernel has one arithmetic intensity per memory: its FLOPs ÷ the bytes that cross that memory (Yang, Kurth,
Williams: Hierarchical Roofline analysis for GPUs, 2020). Differences between the intensities tell where data
is reused.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.analysis.hardware.devices import SMEM_BYTES_PER_CLOCK, total_clocks_per_s
from cutegen_nb.core.device import Device
from cutegen_nb.core.nsight.metrics import L2_SECTORS
from cutegen_nb.core.profile import SECTOR_BYTES, Profile, ProfileSource

DRAM, L2, SHARED = "DRAM", "L2", "shared memory"
"""Names of memory levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLevel:
    """One memory level and its bandwidth: a slanted roof of the roofline."""

    name: str
    """``DRAM``, ``L2`` or ``shared memory``."""
    bandwidth_bytes_per_s: float
    """Bandwidth of the whole device, in bytes a second."""
    source: str
    """Document or measurement that the bandwidth comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes that one kernel moves through one memory level."""

    level: str
    """Name of the memory level, as in `MemoryLevel.name`."""
    moved_bytes: int
    """Bytes that cross the memory level."""
    counted: str
    """Method of counting, in a few words for the reader."""


def levels(device: Device) -> tuple[MemoryLevel, ...]:
    """Return the memory levels whose bandwidth is known, the slowest first."""
    found = []
    if device.bandwidth_bytes_per_s:
        found.append(
            MemoryLevel(name=DRAM, bandwidth_bytes_per_s=device.bandwidth_bytes_per_s, source=device.source)
        )
    if device.l2_bandwidth_bytes_per_s:
        found.append(
            MemoryLevel(
                name=L2, bandwidth_bytes_per_s=device.l2_bandwidth_bytes_per_s, source=device.l2_source
            )
        )
    clocks = clocks_per_s(device)
    if clocks:
        found.append(
            MemoryLevel(
                name=SHARED,
                # Each multiprocessor has shared memory of its own, so their bandwidths add up.
                bandwidth_bytes_per_s=SMEM_BYTES_PER_CLOCK * clocks,
                source=_shared_source(device),
            )
        )
    return tuple(found)


def clocks_per_s(device: Device) -> float:
    """Return the clocks a second of all multiprocessors together; 0 where the device does not tell."""
    return total_clocks_per_s(
        device.architecture,
        sm_count=device.sm_count,
        clock_hz=device.clock_hz,
        peak_f32=device.peak_flops.get("cuda.f32", 0.0),
    )


def traffic(profile: Profile) -> tuple[Traffic, ...]:
    """Return the bytes through each memory level that a profile counted.

    Levels without traffic are left out.
    """
    counters = profile.counters
    measured = profile.source is ProfileSource.NSIGHT
    # Nsight's own count of L1–L2 sectors excludes L1 hits; the simulator has no L1, so every request counts.
    between = sum(one.metric(L2_SECTORS) or 0.0 for one in profile.launches)
    found = (
        Traffic(
            level=DRAM,
            moved_bytes=distinct_sectors(profile) * SECTOR_BYTES,
            counted="what crossed it, as measured"
            if measured
            else "different sectors of each launch: what crosses it if the L2 never evicts",
        ),
        Traffic(
            level=L2,
            moved_bytes=round(between or counters.gmem_sectors) * SECTOR_BYTES,
            counted="sectors between the L1s and the L2, as measured"
            if between
            else "sectors of every request, no L1 modelled",
        ),
        Traffic(
            level=SHARED,
            # A wavefront occupies all 32 banks for a clock, however few of them it uses.
            moved_bytes=counters.smem_wavefronts * SMEM_BYTES_PER_CLOCK,
            counted="wavefronts of 128 bytes, conflicts included",
        ),
    )
    return tuple(one for one in found if one.moved_bytes)


def distinct_sectors(profile: Profile) -> int:
    """Return the distinct sectors of each launch, added up over launches.

    A launch without that record counts the sectors of every request.
    """
    # A sector that two launches touch counts twice: nothing is assumed to stay cached between launches.
    return sum(item.gmem_distinct_sectors or item.counters.gmem_sectors for item in profile.launches)


def _shared_source(device: Device) -> str:
    if device.sm_count and device.clock_hz:
        return (
            f"{SMEM_BYTES_PER_CLOCK} bytes a clock × {device.sm_count} multiprocessors × "
            f"{device.clock_hz / 1e6:.0f} MHz (CUDA C++ Programming Guide: 32 banks of 32 bits a clock)"
        )
    return (
        f"{SMEM_BYTES_PER_CLOCK} bytes a clock of each multiprocessor (CUDA C++ Programming Guide), "
        "at the clock that the fp32 peak implies"
    )
