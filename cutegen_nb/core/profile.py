"""Counts and counters of a candidate's kernels, by launch and by line of Python."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum

SECTOR_BYTES = 32
"""Bytes in the smallest unit a GPU's L2 moves."""


class ProfileSource(StrEnum):
    """Where the figures come from; every view shows it."""

    SIMULATED = "simulated counts"
    NSIGHT = "Nsight Compute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Counts of a launch or of one line. All are totals over threads or warps; none is a time."""

    warp_instructions: int = 0
    """PTX instructions, one a warp that executes it with at least one active thread."""
    thread_instructions: int = 0
    """PTX instructions, one an active thread."""
    flops: dict[str, int] = field(default_factory=dict)
    """Floating-point operations by ``pipe.type`` (``cuda.f32``, ``tensor.f16``); a multiply-add counts two,
    predicated-off threads none."""
    gmem_load_bytes: int = 0
    """Bytes requested by loads from global memory."""
    gmem_store_bytes: int = 0
    """Bytes requested by stores to global memory."""
    gmem_load_sectors: int = 0
    """32-byte sectors touched by global loads, counted once a warp request (no cache is modelled)."""
    gmem_store_sectors: int = 0
    """32-byte sectors touched by global stores, counted once a warp request."""
    gmem_atomic_sectors: int = 0
    """32-byte sectors touched by global atomics and reductions, counted once a warp request."""
    gmem_ideal_sectors: int = 0
    """The fewest sectors that could carry the distinct bytes each warp request asked for."""
    gmem_requests: int = 0
    """Warp-level global memory instructions."""
    smem_load_bytes: int = 0
    """Bytes requested by loads from shared memory."""
    smem_store_bytes: int = 0
    """Bytes requested by stores to shared memory."""
    smem_wavefronts: int = 0
    """Passes over the 32 banks of shared memory that loads, stores and atomics need."""
    smem_ideal_wavefronts: int = 0
    """The fewest passes that the distinct bytes of each request would need without a bank conflict."""
    barriers: int = 0
    """Barrier instructions, one a warp."""
    branches: int = 0
    """Branch instructions, one a warp."""
    divergent_branches: int = 0
    """Of those, the ones that split the active threads of their warp."""

    @property
    def gmem_sectors(self) -> int:
        """Sectors of loads, stores and atomics together."""
        return self.gmem_load_sectors + self.gmem_store_sectors + self.gmem_atomic_sectors

    @property
    def gmem_bytes(self) -> int:
        """Bytes requested by global loads and stores."""
        return self.gmem_load_bytes + self.gmem_store_bytes

    @property
    def total_flops(self) -> int:
        """Floating-point operations of every pipe and type."""
        return sum(self.flops.values())

    def __add__(self, other: Counters) -> Counters:
        """Sum of two counts, field by field."""
        values = {
            item.name: getattr(self, item.name) + getattr(other, item.name)
            for item in fields(self)
            if item.name != "flops"
        }
        flops = {
            kind: self.flops.get(kind, 0) + other.flops.get(kind, 0)
            for kind in sorted(self.flops.keys() | other.flops.keys())
        }
        return Counters(flops=flops, **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCounters:
    """What one line of Python cost."""

    file: str
    """Path as the compiler saw it."""
    line: int
    """From 1; 0 where the compiler gave none."""
    counters: Counters
    """Totals of the instructions that came from this line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchProfile:
    """One kernel launch."""

    kernel: str
    """Name in the PTX."""
    grid: tuple[int, int, int]
    """CTAs in x, y, z."""
    block: tuple[int, int, int]
    """Threads in x, y, z."""
    dynamic_smem_bytes: int
    """Dynamic shared memory asked for at launch."""
    static_smem_bytes: int = 0
    """Shared memory declared in the kernel."""
    counters: Counters
    """Totals."""
    lines: tuple[LineCounters, ...] = ()
    """By line of Python, in file and line order."""
    gmem_distinct_sectors: int = 0
    """Different 32-byte sectors touched at all: what would cross DRAM with a cache that never evicts."""
    ctas_run: int | None = None
    """CTAs that ran, where only a sample of the grid did; None where all of them did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What one call of a candidate launched."""

    source: ProfileSource
    """Where the figures come from."""
    device: str
    """Device, or architecture for the simulator."""
    launches: tuple[LaunchProfile, ...]
    """In launch order."""

    @property
    def counters(self) -> Counters:
        """Totals over launches."""
        total = Counters()
        for launch in self.launches:
            total += launch.counters
        return total
