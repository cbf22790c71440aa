"""The memories of a device as slanted roofs, and what a kernel moves through each.

A kernel has one intensity a memory (Yang, Kurth, Williams: Hierarchical Roofline analysis for GPUs, 2020):
its FLOPs ÷ the bytes that cross that memory. How these lie tells where reuse happens.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.analysis.devices import SMEM_BYTES_PER_CLOCK, multiprocessor_clocks
from cutegen_nb.core.device import Device
from cutegen_nb.core.nsight_metrics import L2_SECTORS
from cutegen_nb.core.profile import SECTOR_BYTES, Profile, ProfileSource

DRAM, L2, SHARED = "DRAM", "L2", "shared memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One memory: a slanted roof."""

    name: str
    """``DRAM``, ``L2`` or ``shared memory``."""
    bandwidth_bytes_per_s: float
    """Of the whole device."""
    source: str
    """Where the figure comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What one kernel moves through one memory."""

    level: str
    """Name of the memory."""
    moved_bytes: int
    """Bytes that cross it."""
    counted: str
    """How they were counted, in a few words."""


def levels(device: Device) -> tuple[Level, ...]:
    """The memories whose bandwidth is known, the slowest first."""
    found = []
    if device.bandwidth_bytes_per_s:
        found.append(
            Level(name=DRAM, bandwidth_bytes_per_s=device.bandwidth_bytes_per_s, source=device.source)
        )
    if device.l2_bandwidth_bytes_per_s:
        found.append(
            Level(name=L2, bandwidth_bytes_per_s=device.l2_bandwidth_bytes_per_s, source=device.l2_source)
        )
    clocks = clocks_per_s(device)
    if clocks:
        found.append(
            Level(
                name=SHARED,
                bandwidth_bytes_per_s=SMEM_BYTES_PER_CLOCK * clocks,
                source=_shared_source(device),
            )
        )
    return tuple(found)


def clocks_per_s(device: Device) -> float:
    """Clocks a second of all multiprocessors together; 0 where nothing tells."""
    return multiprocessor_clocks(
        device.architecture,
        sm_count=device.sm_count,
        clock_hz=device.clock_hz,
        peak_f32=device.peak_flops.get("cuda.f32", 0.0),
    )


def traffic(profile: Profile) -> tuple[Traffic, ...]:
    """Bytes through each memory that a profile counted; memories that nothing crossed are left out."""
    counters = profile.counters
    measured = profile.source is ProfileSource.NSIGHT
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
            moved_bytes=counters.smem_wavefronts * SMEM_BYTES_PER_CLOCK,
            counted="wavefronts of 128 bytes, conflicts included",
        ),
    )
    return tuple(one for one in found if one.moved_bytes)


def distinct_sectors(profile: Profile) -> int:
    """Different sectors of each launch, added up; every request's sectors where they were not recorded."""
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
