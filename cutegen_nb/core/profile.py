"""Profiles: counts and hardware counters of a candidate's kernels, by launch and by line of Python."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

SECTOR_BYTES = 32
"""Bytes of a sector, the smallest unit that a GPU's L2 moves."""
_WARP = 32
"""Threads in a warp."""
DURATION = "gpu__time_duration.sum"
"""Key of `LaunchProfile.metrics` for the duration of a launch in nanoseconds."""
_PREFIX = "kernel_cutlass_"
"""Beginning of the name of each kernel that the DSL compiles."""
_FUNCTION = re.compile(r"^[ \t]*def[ \t]+(\w+)", re.MULTILINE)
_ARGUMENT = re.compile(
    r"_(?:tensorptr|tensor\d|tensor_TMA|ptr[fbiu]\d|i\d+_|Tiled(?:MMA|Copy|Mma)|(?:MMA|Copy)_?Atom|ComposedLayout|S\d|\d)"
    r"|_(?:None|True|False)(?=_|$)"
)
"""Start of the arguments in a kernel's name, where no source is at hand. A digit after an underscore counts
as a start too, so a function's name that has one is cut there."""
_METHOD = re.compile(r"^(?P<method>\w+)___main__(?P<class>\w+?)_object_at_*$")
_IMPORTED_METHOD = re.compile(r"^(?P<method>\w*?kernel)_[a-z0-9_]*?(?P<class>[A-Z]\w*?)_object_at_*$")
"""Method of a class that another module defines. The module's name, without its dots, touches the class's,
which is taken to begin with the first capital; that of the method is taken to end in ``kernel``."""


class ProfileSource(StrEnum):
    """Origin of the figures; every view shows it."""

    SIMULATED = "simulated counts"
    NSIGHT = "Nsight Compute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One figure of Nsight Compute, under its own name."""

    value: float
    """In base units: nanoseconds, bytes, sectors, per cent."""
    unit: str = ""
    """``ns``, ``byte``, ``%``; empty for a plain number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Requests of one kind (loads, atomics, asynchronous copies) to global or shared memory."""

    requests: int = 0
    """Warp-level instructions of which at least one thread reached memory."""
    bytes: int = 0
    """Bytes requested, summed over threads."""
    passes: int = 0
    """Global memory: 32-byte sectors. Shared memory: wavefronts, passes over its 32 banks."""
    ideal: int = 0
    """Least number of passes for the distinct bytes of each request."""

    @property
    def efficiency(self) -> float:
        """Ideal ÷ passes, 1.0 where nothing is wasted or nothing was asked."""
        return self.ideal / self.passes if self.passes else 1.0

    def __add__(self, other: Access) -> Access:
        """Add two records field by field."""
        return Access(
            requests=self.requests + other.requests, bytes=self.bytes + other.bytes,
            passes=self.passes + other.passes, ideal=self.ideal + other.ideal,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Counts of a launch or of one line: totals over threads or warps, never times."""

    warp_instructions: int = 0
    """PTX instructions, counted once a warp that executes one with at least one active thread."""
    thread_instructions: int = 0
    """PTX instructions, counted once an active thread."""
    thread_instructions_on: int = 0
    """`thread_instructions` whose predicate held; 0 in profiles made before this was counted."""
    instructions: dict[str, int] = field(default_factory=dict)
    """``warp_instructions`` by pipe, in PTX's names: ``fp32``, ``alu``, ``tensor.f16``, ``load.global``; see
    ``simulator.counters.pipes``."""
    flops: dict[str, int] = field(default_factory=dict)
    """Floating-point operations by ``pipe.type`` (``cuda.f32``, ``tensor.f16``). A multiply-add counts two; a
    special function, a minimum or a maximum one. Comparisons, selections, conversions, negations and
    predicated-off threads count none. Integer products of tensor cores are included (``tensor.s8``)."""
    products: dict[str, int] = field(default_factory=dict)
    """Matrix products of ``tcgen05.mma`` by shape and type of A: ``128x256x16 f16``."""
    tensor_load_bytes: int = 0
    """Bytes that threads loaded from tensor memory into registers."""
    tensor_store_bytes: int = 0
    """Bytes that threads stored from registers into tensor memory, and copies into it."""
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
    """Least number of sectors for the distinct bytes of each warp request."""
    gmem_requests: int = 0
    """Warp-level global memory instructions."""
    gmem_accesses: dict[str, Access] = field(default_factory=dict)
    """Global memory accesses by kind: ``load``, ``store``, ``atomic``, ``reduction``, ``async-copy``."""
    smem_load_bytes: int = 0
    """Bytes requested by loads from shared memory."""
    smem_store_bytes: int = 0
    """Bytes requested by stores to shared memory."""
    smem_wavefronts: int = 0
    """Wavefronts, passes over the 32 banks of shared memory, of loads, stores and atomics."""
    smem_ideal_wavefronts: int = 0
    """Least number of wavefronts for the distinct bytes of each request, without bank conflicts."""
    smem_accesses: dict[str, Access] = field(default_factory=dict)
    """Shared memory accesses by kind: ``load``, ``store``, ``atomic``, ``reduction``, ``async-copy``,
    ``load-matrix``, ``store-matrix``."""
    local_load_bytes: int = 0
    """Bytes requested from local memory as PTX declares it. The compiler may keep such arrays in registers;
    its own spills are in ``KernelResources``, not here."""
    local_store_bytes: int = 0
    """Bytes written to local memory as PTX declares it."""
    gmem_waits: int = 0
    """Waits of warps at the first use of global loads that a barrier keeps the compiler from issuing earlier.
    Loads under way together count one. Simulated profiles only, from PTX; bulk copies (TMA) are not
    followed."""
    gmem_wait_instructions: int = 0
    """Instructions issued between a load and its first use, summed over the waits in `gmem_waits`."""
    barriers: int = 0
    """Barrier instructions, counted once a warp."""
    branches: int = 0
    """Branch instructions, counted once a warp."""
    divergent_branches: int = 0
    """Branches that split the active threads of their warp."""

    stall_samples: dict[str, int] = field(default_factory=dict)
    """Warp samples by stall reason (``long_scoreboard``, ``barrier``), or ``selected`` for a warp that
    issued. Nsight Compute only."""

    awaited_samples: int = 0
    """Samples of warps that waited for loads, attributed to the load before the waiting instruction. Nsight
    Compute only."""

    @property
    def samples(self) -> int:
        """Sum of all warp samples; 0 in simulated profiles."""
        return sum(self.stall_samples.values())

    @property
    def gmem_sectors(self) -> int:
        """Sectors of global loads, stores and atomics together."""
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
        """Add two counts field by field."""
        return Counters(
            **{item.name: _sum(getattr(self, item.name), getattr(other, item.name)) for item in fields(self)}
        )


def _sum(one: Any, other: Any) -> Any:  # noqa: ANN401 - a number, or a dictionary of numbers or accesses
    """Add two figures; dictionaries key by key, in sorted order of their keys."""
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
    """Compiled code of one line of Python."""

    file: str
    """Path as the compiler saw it."""
    line: int
    """Line number, from 1."""
    instructions: int
    """Instructions compiled from the line, as they stand in the code."""
    spill_bytes: int = 0
    """Bytes a thread moved by its spill instructions, each instruction counted once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledCode:
    """Static instructions of a kernel; their execution counts are not known from the code."""

    language: str
    """``SASS`` where the machine code was read, ``PTX`` where only the PTX text was available."""
    instructions: dict[str, int]
    """Instructions by name: ``FFMA``, ``LDG.128`` (memory accesses with the bits of each thread). PTX names
    are ``fma.f32`` and ``ld.global.128``."""
    mma_shapes: dict[str, int] = field(default_factory=dict)
    """Matrix products by shape and types, in PTX's spelling: ``m16n8k16.f32.f16.f16.f32``."""
    lines: tuple[CodeLine, ...] = ()
    """Code by line of Python, in file and line order; empty without line information."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelResources:
    """Registers, memory and code size of a kernel, read from its machine code; no GPU is needed."""

    architecture: str
    """Architecture that the kernel was compiled for: ``sm_80``."""
    registers: int
    """32-bit registers of a thread."""
    stack_bytes: int = 0
    """Local memory of a thread in bytes: arrays that did not fit registers, and spilled registers."""
    spill_store_bytes: int = 0
    """Bytes stored by spill instructions, each instruction counted once as it stands in the code."""
    spill_load_bytes: int = 0
    """Bytes loaded by refill instructions, counted the same way."""
    static_smem_bytes: int = 0
    """Shared memory of a CTA that the kernel declares, in bytes."""
    constant_bytes: int = 0
    """Bytes of constant bank 0: parameters and the compiler's own constants beside them."""
    max_threads: int = 0
    """Largest CTA that the compiler was told of, in threads; 0 where it was not told."""
    code_bytes: int = 0
    """Bytes of machine code."""


_LIBRARY = frozenset({"site-packages", "dist-packages", "nvidia_cutlass_dsl"})
"""Folders that hold the DSL, whose lines are not the author's to change. A checkout of CUTLASS is not listed:
its examples are programs that people change."""


def is_own(file: str, line: int) -> bool:
    """Return whether a line is the author's to change: it has a number, and its file is not in a library."""
    return line > 0 and not _LIBRARY.intersection(PurePosixPath(file).parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCounters:
    """Counts of one line of Python."""

    file: str
    """Path as the compiler saw it."""
    line: int
    """Line number, from 1; 0 where the compiler gave none."""
    counters: Counters
    """Totals of the instructions compiled from this line."""

    @property
    def is_own(self) -> bool:
        """True if the line is the author's to change."""
        return is_own(self.file, self.line)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchProfile:
    """Counts and configuration of one kernel launch."""

    kernel: str
    """Kernel name in the PTX."""
    grid: tuple[int, int, int]
    """Grid: CTAs in x, y, z."""
    block: tuple[int, int, int]
    """CTA: threads in x, y, z."""
    dynamic_smem_bytes: int
    """Dynamic shared memory of the launch in bytes."""
    static_smem_bytes: int = 0
    """Shared memory declared in the kernel, in bytes."""
    counters: Counters
    """Totals of the launch."""
    lines: tuple[LineCounters, ...] = ()
    """Counts by line of Python, in file and line order."""
    gmem_distinct_sectors: int = 0
    """Distinct 32-byte sectors touched: the DRAM traffic with a cache that never evicts."""
    ctas_run: int | None = None
    """Number of CTAs that ran, where only a sample of the grid did; None where all ran."""
    resources: KernelResources | None = None
    """Registers and memory of the kernel; None where its machine code was not read."""
    code: CompiledCode | None = None
    """Compiled code; None in profiles made before it was read."""
    metrics: dict[str, Metric] = field(default_factory=dict)
    """Nsight Compute's metrics by its own names; empty in simulated profiles."""

    def metric(self, name: str) -> float | None:
        """Return a metric in base units; None where it was not collected."""
        found = self.metrics.get(name)
        return found.value if found else None

    @property
    def duration_s(self) -> float | None:
        """Seconds under the profiler, at the clocks of that run; None for a simulated launch."""
        nanoseconds = self.metric(DURATION)
        return None if nanoseconds is None else nanoseconds * 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Profile of one call of a candidate."""

    source: ProfileSource
    """Origin of the figures."""
    device: str
    """Name of the device; the architecture for the simulator."""
    launches: tuple[LaunchProfile, ...]
    """Launches, in order."""
    made_by: str = ""
    """Tool and version, device, driver, day and clocks, in one line; empty for simulated counts."""

    @property
    def counters(self) -> Counters:
        """Totals over launches."""
        total = Counters()
        for launch in self.launches:
            total += launch.counters
        return total


def function_name(kernel: str, source: str = "") -> str:
    """Return the name of a kernel's function; another name than the DSL's is returned unchanged.

    The DSL writes ``kernel_cutlass_NAME_ARGUMENTS_NUMBER``, with the texts of constants, layouts and tensors,
    and cuts it after 180 characters. NAME of a method is ``METHOD___main__CLASS_object_at_``, or has the name
    of another module in place of ``__main__``. With the candidate's `source` it is the longest name of a
    function there that fits. Without one the name ends where the arguments seem to begin.
    """
    if not kernel.startswith(_PREFIX):
        return kernel
    mangled = kernel.removeprefix(_PREFIX)
    fitting = [name for name in _FUNCTION.findall(source) if _begins(mangled, name)]
    name = max(fitting, key=len, default="")
    rest = mangled[len(name) :]
    method = re.match(r"___main__(\w+?)_object_at_", rest) if name else None
    if method:
        return f"{method[1]}.{name}"
    return name or _before_arguments(mangled)


def _begins(mangled: str, name: str) -> bool:
    return mangled == name or mangled.startswith(f"{name}_")


def _before_arguments(mangled: str) -> str:
    whole, found, _ = mangled.partition("_object_at_")
    if found:
        method = _METHOD.match(f"{whole}{found}") or _IMPORTED_METHOD.match(f"{whole}{found}")
        return f"{method['class']}.{method['method']}" if method else f"{whole}{found}"
    # A name has a character at least before its arguments.
    arguments = _ARGUMENT.search(mangled, 1)
    return mangled[: arguments.start()].rstrip("_") if arguments else mangled
