"""Counts and counters of a candidate's kernels, by launch and by line of Python."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

SECTOR_BYTES = 32
"""Bytes in the smallest unit a GPU's L2 moves."""
_WARP = 32
DURATION = "gpu__time_duration.sum"
"""Nanoseconds that a launch took, in `LaunchProfile.metrics`."""


class ProfileSource(StrEnum):
    """Where the figures come from; every view shows it."""

    SIMULATED = "simulated counts"
    NSIGHT = "Nsight Compute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One figure of Nsight Compute, as it names it."""

    value: float
    """In base units: nanoseconds, bytes, sectors, per cent."""
    unit: str = ""
    """``ns``, ``byte``, ``%``; empty for a plain number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What one kind of access (loads, atomics, asynchronous copies) asked of global or shared memory."""

    requests: int = 0
    """Warp-level instructions of which at least one thread reached memory."""
    bytes: int = 0
    """Bytes that threads asked for, each thread's own."""
    passes: int = 0
    """Global memory: 32-byte sectors. Shared memory: wavefronts, passes over its 32 banks."""
    ideal: int = 0
    """The fewest passes that could carry the distinct bytes of each request."""

    @property
    def efficiency(self) -> float:
        """Ideal ÷ passes, 1.0 where nothing is wasted or nothing was asked."""
        return self.ideal / self.passes if self.passes else 1.0

    def __add__(self, other: Access) -> Access:
        """Sum, figure by figure."""
        return Access(
            requests=self.requests + other.requests, bytes=self.bytes + other.bytes,
            passes=self.passes + other.passes, ideal=self.ideal + other.ideal,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Counts of a launch or of one line. All are totals over threads or warps; none is a time."""

    warp_instructions: int = 0
    """PTX instructions, one a warp that executes it with at least one active thread."""
    thread_instructions: int = 0
    """PTX instructions, one an active thread."""
    thread_instructions_on: int = 0
    """Of those, the ones whose predicate held; 0 in profiles made before it was counted."""
    instructions: dict[str, int] = field(default_factory=dict)
    """``warp_instructions`` by pipe, as PTX names the work: ``fp32``, ``alu``, ``tensor.f16``,
    ``load.global``; see ``simulator.pipes``."""
    flops: dict[str, int] = field(default_factory=dict)
    """Floating-point operations by ``pipe.type`` (``cuda.f32``, ``tensor.f16``); a multiply-add counts two,
    a special function, a minimum or a maximum one; comparisons, selections, conversions, negations and
    predicated-off threads none. Integer products of tensor cores are here too (``tensor.s8``)."""
    gmem_load_bytes: int = 0
    """Bytes requested by loads from global memory, asynchronous copies included."""
    gmem_store_bytes: int = 0
    """Bytes requested by stores to global memory."""
    gmem_load_sectors: int = 0
    """32-byte sectors touched by global loads and asynchronous copies, counted once a warp request (no cache
    is modelled)."""
    gmem_store_sectors: int = 0
    """32-byte sectors touched by global stores, counted once a warp request."""
    gmem_atomic_sectors: int = 0
    """32-byte sectors touched by global atomics and reductions, counted once a warp request."""
    gmem_ideal_sectors: int = 0
    """The fewest sectors that could carry the distinct bytes each warp request asked for."""
    gmem_requests: int = 0
    """Warp-level global memory instructions."""
    gmem_accesses: dict[str, Access] = field(default_factory=dict)
    """The above by kind: ``load``, ``store``, ``atomic``, ``reduction``, ``async-copy``."""
    smem_load_bytes: int = 0
    """Bytes requested by loads from shared memory."""
    smem_store_bytes: int = 0
    """Bytes requested by stores to shared memory."""
    smem_wavefronts: int = 0
    """Passes over the 32 banks of shared memory that loads, stores and atomics need."""
    smem_ideal_wavefronts: int = 0
    """The fewest passes that the distinct bytes of each request would need without a bank conflict."""
    smem_accesses: dict[str, Access] = field(default_factory=dict)
    """The above by kind: ``load``, ``store``, ``atomic``, ``reduction``, ``async-copy``, ``load-matrix``,
    ``store-matrix``."""
    local_load_bytes: int = 0
    """Bytes requested from local memory as PTX declares it; the compiler may keep such arrays in registers,
    and spills of its own are not here but in ``KernelResources``."""
    local_store_bytes: int = 0
    """Bytes written to local memory, in the same sense."""
    gmem_waits: int = 0
    """Times a warp comes to the first use of loads from global memory that a barrier keeps the compiler from
    asking for earlier; of loads under way together one counts. Simulated profiles only, from PTX; bulk copies
    (TMA) are not followed."""
    gmem_wait_instructions: int = 0
    """Instructions that such a warp issues between a load and its first use, over all of these waits."""
    barriers: int = 0
    """Barrier instructions, one a warp."""
    branches: int = 0
    """Branch instructions, one a warp."""
    divergent_branches: int = 0
    """Of those, the ones that split the active threads of their warp."""

    stall_samples: dict[str, int] = field(default_factory=dict)
    """Samples of warps by why they issued nothing (``long_scoreboard``, ``barrier``), ``selected`` where they
    did. Nsight Compute only."""

    awaited_samples: int = 0
    """Samples of warps that waited for loads, put to the load before the instruction that waits. Nsight
    Compute only."""

    @property
    def samples(self) -> int:
        """Samples of warps altogether; 0 in simulated profiles."""
        return sum(self.stall_samples.values())

    @property
    def gmem_sectors(self) -> int:
        """Sectors of loads, stores and atomics together."""
        return self.gmem_load_sectors + self.gmem_store_sectors + self.gmem_atomic_sectors

    @property
    def gmem_bytes(self) -> int:
        """Bytes requested by global loads and stores."""
        return self.gmem_load_bytes + self.gmem_store_bytes

    @property
    def active_lane_fraction(self) -> float | None:
        """Thread instructions ÷ (32 · warp instructions); None where nothing ran."""
        full = _WARP * self.warp_instructions
        return self.thread_instructions / full if full else None

    @property
    def total_flops(self) -> int:
        """Floating-point operations of every pipe and type."""
        return sum(self.flops.values())

    def __add__(self, other: Counters) -> Counters:
        """Sum of two counts, field by field."""
        return Counters(
            **{item.name: _sum(getattr(self, item.name), getattr(other, item.name)) for item in fields(self)}
        )


def _sum(one: Any, other: Any) -> Any:  # noqa: ANN401 - a number, or a dictionary of numbers or accesses
    """Two figures added; dictionaries key by key, in order of their keys."""
    if not isinstance(one, dict):
        return one + other
    if not one or not other:
        return dict(one or other)
    keys = sorted(one.keys() | other.keys())
    return {
        key: one[key] + other[key] if key in one and key in other else (one if key in one else other)[key]
        for key in keys
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLine:
    """What one line of Python became."""

    file: str
    """Path as the compiler saw it."""
    line: int
    """From 1."""
    instructions: int
    """Instructions that the compiler made of it, as they stand in the code."""
    spill_bytes: int = 0
    """Bytes a thread that the spilling and refilling ones among them move, each counted once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledCode:
    """The instructions of a kernel as they stand in its code; how often each runs is not known from it."""

    language: str
    """``SASS`` where the machine code was read, ``PTX`` where only the text before it was there."""
    instructions: dict[str, int]
    """By name: ``FFMA``, ``LDG.128`` (memory accesses with the bits each thread moves); names of PTX are
    ``fma.f32`` and ``ld.global.128``."""
    mma_shapes: dict[str, int] = field(default_factory=dict)
    """Matrix products by shape and types, as PTX writes them: ``m16n8k16.f32.f16.f16.f32``."""
    lines: tuple[CodeLine, ...] = ()
    """By line of Python, in file and line order; empty where the code names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelResources:
    """What the compiler gave a kernel, read from its machine code; no GPU is needed for it."""

    architecture: str
    """What it was compiled for: ``sm_80``."""
    registers: int
    """32-bit registers of a thread."""
    stack_bytes: int = 0
    """Local memory of a thread: arrays the compiler could not keep in registers, and spilled registers."""
    spill_store_bytes: int = 0
    """Bytes that the spilling instructions store, each counted once as it stands in the code."""
    spill_load_bytes: int = 0
    """Bytes that the refilling instructions load, counted the same way."""
    static_smem_bytes: int = 0
    """Shared memory of a CTA that the kernel declares."""
    constant_bytes: int = 0
    """Constant bank 0: parameters and what the compiler put beside them."""
    max_threads: int = 0
    """Most threads of a CTA that the compiler was told of; 0 where it was not."""
    code_bytes: int = 0
    """Machine code of the kernel."""


_LIBRARY = frozenset({"site-packages", "dist-packages", "nvidia_cutlass_dsl"})
"""Folders that hold the DSL: a line there is not the author's to change. A checkout of CUTLASS is no library:
its examples are programs that people change."""


def is_own(file: str, line: int) -> bool:
    """Whether a line is the author's to change: it has a number, and its file is not the library's."""
    return line > 0 and not _LIBRARY.intersection(PurePosixPath(file).parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCounters:
    """What one line of Python cost."""

    file: str
    """Path as the compiler saw it."""
    line: int
    """From 1; 0 where the compiler gave none."""
    counters: Counters
    """Totals of the instructions that came from this line."""

    @property
    def is_own(self) -> bool:
        """Whether it is a line of the author's to change."""
        return is_own(self.file, self.line)


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
    resources: KernelResources | None = None
    """What the compiler gave the kernel; None where its machine code was not read."""
    code: CompiledCode | None = None
    """What it was compiled to; None in profiles made before that was read."""
    metrics: dict[str, Metric] = field(default_factory=dict)
    """What Nsight Compute measured, by its own names; empty in simulated profiles."""

    def metric(self, name: str) -> float | None:
        """A measured figure in base units; None where it was not collected."""
        found = self.metrics.get(name)
        return found.value if found else None

    @property
    def duration_s(self) -> float | None:
        """How long it ran under the profiler, at the clocks of then; None for a simulated launch."""
        nanoseconds = self.metric(DURATION)
        return None if nanoseconds is None else nanoseconds * 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What one call of a candidate launched."""

    source: ProfileSource
    """Where the figures come from."""
    device: str
    """Device, or architecture for the simulator."""
    launches: tuple[LaunchProfile, ...]
    """In launch order."""
    made_by: str = ""
    """Tool and version, device, driver, day and clocks, in a line; empty for simulated counts."""

    @property
    def counters(self) -> Counters:
        """Totals over launches."""
        total = Counters()
        for launch in self.launches:
            total += launch.counters
        return total
