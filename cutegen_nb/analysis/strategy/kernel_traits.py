"""Traits of a kernel: accesses, use of the machine, and grid, from counts, machine code and source.

Counts and machine code come first. The source is asked for what a smaller size hides: loops that the compiler
dropped because they make one turn there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_nb.analysis.binary.instruction_classes import (
    COPIES,
    GLOBAL_LOADS,
    GLOBAL_STORES,
    TENSOR,
    by_class,
)
from cutegen_nb.analysis.bottleneck.full_grid import (
    completes_partials,
    ctas_at_full_size,
    is_scaled,
    values_passed_bytes,
)
from cutegen_nb.analysis.bottleneck.launch_causes import serialised_wgmma
from cutegen_nb.analysis.hardware.occupancy import WARP_THREADS, launch_occupancy
from cutegen_nb.analysis.problem.extents import Rows, largest_given, product_of, rows_of
from cutegen_nb.analysis.source.loops import LoopFacts, loop_facts
from cutegen_nb.analysis.source.simplification import features
from cutegen_nb.analysis.strategy.row_passes import row_passes
from cutegen_nb.core.estimate import FullSizeSample
from cutegen_nb.core.graph import DTYPE_BYTES
from cutegen_nb.core.problem import ProblemFacts, Workload
from cutegen_nb.core.profile import (
    Counters,
    LaunchProfile,
    Profile,
    ProfileSource,
)

VECTOR_BITS = 128
"""Widest access of one thread, in bits (PTX ISA, ``ld.global.v4.b32``)."""
_NEARLY = 0.9
"""Share of the widest access from which an average counts as that wide: tails have inactive lanes."""
_WORK_FRACTION = 0.1
"""Share of the heaviest launch's bytes from which a launch counts among those that do the work."""
_READS = frozenset({GLOBAL_LOADS, COPIES})
"""Classes of instructions that read global memory."""
_WRITES = frozenset({GLOBAL_STORES})
"""Classes of instructions that write global memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTraits:
    """Traits of a candidate's kernels; None and empty texts stand for what nothing tells."""

    narrowest_bits: int = 0
    """Narrowest access to global memory in the machine code, in bits a thread; 0 if unknown."""
    widest_bits: int = 0
    """Widest access to global memory in the machine code, in bits a thread; 0 if unknown."""
    wide_fraction: float | None = None
    """Share of the bytes moved by accesses of 128 bits, or of the widest that the size permits."""
    coalesced_fraction: float | None = None
    """Least sectors of all requests ÷ sectors touched."""
    launches: int = 0
    """Launches of one call; 0 if unknown."""
    intermediate_fraction: float | None = None
    """Bytes stored beyond the outputs ÷ least bytes of the problem."""
    values_passed_bytes: int = 0
    """Bytes of the partial sums and statistics that launches store for later ones."""
    ctas: float | None = None
    """CTAs of the heaviest launch at the problem's full size."""
    threads: int = 0
    """Threads of its CTAs; 0 if unknown."""
    resident_ctas: int | None = None
    """CTAs of that launch that one multiprocessor holds at once."""
    registers: int = 0
    """Registers of its threads; 0 if unknown."""
    smem_bytes: int = 0
    """Shared memory of its CTAs in bytes."""
    row_owner: str = ""
    """Threads that reduce a row together: ``thread``, ``warp`` or ``CTA``; empty without rows."""
    passes: float | None = None
    """Times that the rows are asked of global memory, at least."""
    passes_at_most: float | None = None
    """Times that they are asked for at most; above `passes` where other loads may hide loads of rows."""
    loads_in_flight: int | None = None
    """Loads that a thread can issue before it uses the first."""
    grid_stride: bool = False
    """True if a loop walks the work with the stride of the grid."""
    split: bool | None = None
    """True if atomics or a later launch complete sums that CTAs share."""
    staged_fraction: float | None = None
    """Bytes stored in shared memory ÷ bytes loaded from global memory."""
    multiply_adds_a_load: float | None = None
    """Multiply-adds on CUDA cores ÷ elements loaded into registers."""
    tensor_types: tuple[str, ...] = ()
    """Types of products on tensor cores: ``f16``; ``?`` where only the source tells."""
    async_copies: bool = False
    """True if global memory is copied to shared memory asynchronously (``cp.async`` or TMA)."""
    covered_instructions: float | None = None
    """Instructions that a warp issues between a load and its first use, on average over its waits."""
    groups_in_flight: int = 0
    """Groups of asynchronous copies that a wait leaves under way."""
    serialised_wgmma: bool | None = None
    """True if ptxas made each ``wgmma`` wait for the one before it; None where no machine code was read."""
    conflict_ratio: float | None = None
    """Wavefronts of shared memory ÷ least wavefronts; None without shared memory."""


def kernel_traits(
    source: str, facts: ProblemFacts, profile: Profile | None, sample: FullSizeSample | None = None
) -> KernelTraits:
    """Read the traits of a candidate from its source, its profile and a sample at full size.

    A sample replaces the profile, because its launches are those of the full size. Without either the source
    alone is read, which tells little.
    """
    text = features(source)
    loops = loop_facts(source) or LoopFacts()
    constructs = text.constructs if text else frozenset()
    if sample is not None and sample.launches:
        launches = tuple(item.profile for item in sample.launches)
        profile = Profile(source=ProfileSource.SIMULATED, device="", launches=launches)
        facts = _at_full_size(facts)
    if profile is None or not profile.launches:
        return _from_text(facts, constructs, loops)
    return _from_counts(facts, profile, constructs, loops)


def _from_text(facts: ProblemFacts, constructs: frozenset[str], loops: LoopFacts) -> KernelTraits:
    """Traits of a kernel that was not counted. A construct that is missing proves nothing."""
    exchanges = "warp shuffle" in constructs and rows_of(facts.full) is not None
    return KernelTraits(
        row_owner=("CTA" if "shared memory" in constructs else "warp") if exchanges else "",
        grid_stride=loops.grid_stride,
        groups_in_flight=_groups_in_flight(constructs, loops),
        async_copies=bool(constructs & {"cp_async", "tensor memory accelerator"}),
        tensor_types=("?",) if constructs & {"tensor cores", "ldmatrix"} else (),
        loads_in_flight=loops.unrolled_loads if loops.unrolled_loads > 1 else None,
    )


def _groups_in_flight(constructs: frozenset[str], loops: LoopFacts) -> int:
    """Groups of copies under way; one at least where a pipeline of mbarriers has its stages filled ahead."""
    return max(loops.groups_in_flight, int("mbarrier pipeline" in constructs))


def _at_full_size(facts: ProblemFacts) -> ProblemFacts:
    """Facts whose smaller size is the full one, for counts that were taken there."""
    return ProblemFacts(
        workload_class=facts.workload_class, full=facts.full, scaled=facts.full, dtype=facts.dtype
    )


def _from_counts(
    facts: ProblemFacts, profile: Profile, constructs: frozenset[str], loops: LoopFacts
) -> KernelTraits:
    run = facts.scaled if profile.source is ProfileSource.SIMULATED else facts.full
    heavy = _working(profile.launches)
    heaviest = max(heavy, key=_moved)
    counters = profile.counters
    widths = {bits for launch in heavy for bits in _widths(launch, _READS | _WRITES)}
    held = launch_occupancy(heaviest)
    rows = rows_of(run)
    owner = _row_owner(heavy) if rows else ""
    passes = row_passes(profile, run)
    return KernelTraits(
        narrowest_bits=min(widths, default=0),
        widest_bits=max(widths, default=0),
        wide_fraction=_wide_fraction(heavy, _possible_bits(rows, heaviest, owner), rows),
        coalesced_fraction=_ratio(counters.gmem_ideal_sectors, counters.gmem_sectors),
        launches=len(profile.launches),
        intermediate_fraction=_intermediates(counters, run),
        values_passed_bytes=values_passed_bytes(profile, run),
        ctas=ctas_at_full_size(heaviest, profile, facts),
        threads=math.prod(heaviest.block),
        resident_ctas=held.active_ctas if held else None,
        registers=heaviest.resources.registers if heaviest.resources else 0,
        smem_bytes=heaviest.dynamic_smem_bytes + heaviest.static_smem_bytes,
        row_owner=owner,
        passes=passes[0] if passes else None,
        passes_at_most=passes[1] if passes else None,
        loads_in_flight=max(loops.unrolled_loads, *(_grouped_loads(launch) for launch in heavy)),
        grid_stride=loops.grid_stride,
        split=_split(profile, facts, run),
        staged_fraction=_staged(counters),
        multiply_adds_a_load=_multiply_adds(counters, run),
        tensor_types=_tensor_types(heavy),
        serialised_wgmma=_serialised_wgmma(profile),
        async_copies=any(
            "async-copy" in launch.counters.gmem_accesses or _has(launch, COPIES) for launch in heavy
        ),
        covered_instructions=_ratio(counters.gmem_wait_instructions, counters.gmem_waits),
        groups_in_flight=_groups_in_flight(constructs, loops),
        conflict_ratio=_ratio(counters.smem_wavefronts, counters.smem_ideal_wavefronts),
    )


def _ratio(part: float, whole: float) -> float | None:
    """Divide; None where there is nothing to divide by."""
    return part / whole if whole else None


def _moved(launch: LaunchProfile) -> int:
    return launch.counters.gmem_bytes


def _working(launches: Sequence[LaunchProfile]) -> list[LaunchProfile]:
    """Launches that move at least a tenth of the heaviest one's bytes."""
    most = max(_moved(launch) for launch in launches)
    return [launch for launch in launches if _moved(launch) >= _WORK_FRACTION * most]


def _widths(launch: LaunchProfile, kinds: frozenset[str]) -> set[int]:
    """Bits a thread of the global accesses of some kinds in the machine code."""
    return {
        int(bits)
        for kind, names in (by_class(launch.code) if launch.code else {}).items()
        if kind in kinds
        for name in names
        if (bits := name.rpartition(".")[2]).isdigit()
    }


def _possible_bits(rows: Rows | None, launch: LaunchProfile, owner: str) -> int:
    """Widest access that the size permits: threads that share a short row get less than a vector each."""
    sharing = {"CTA": math.prod(launch.block), "warp": WARP_THREADS}.get(owner, 0)
    if rows is None or not sharing or not rows.contiguous:
        return VECTOR_BITS
    each = rows.size_bytes * 8 // sharing
    return min(VECTOR_BITS, max(each, rows.element_bytes * 8))


def _wide_fraction(launches: Sequence[LaunchProfile], possible: int, rows: Rows | None) -> float | None:
    """Share of the bytes that vectors move; None where the size leaves a thread one element at most."""
    found = _moved_by(launches, VECTOR_BITS)
    if found is None or possible == VECTOR_BITS or found >= _NEARLY:
        return found
    return None if rows and possible <= rows.element_bytes * 8 else _moved_by(launches, possible)


def _moved_by(launches: Sequence[LaunchProfile], bits: int) -> float | None:
    """Share of the bytes that accesses of at least `bits` move."""
    moved = sum(launch.counters.gmem_bytes for launch in launches)
    wide = sum(_wide_bytes(launch, bits, _READS) + _wide_bytes(launch, bits, _WRITES) for launch in launches)
    return _ratio(wide, moved)


def _wide_bytes(launch: LaunchProfile, bits: int, kinds: frozenset[str]) -> int:
    """Bytes that a launch loads, or stores, by accesses of at least `bits`.

    The machine code decides where it has one width. Otherwise the average of each line does, which is too low
    where lanes are inactive.
    """

    def moved(counters: Counters) -> int:
        return counters.gmem_load_bytes if kinds is _READS else counters.gmem_store_bytes

    widths = _widths(launch, kinds)
    if len(widths) == 1:
        return moved(launch.counters) if max(widths) >= bits else 0
    known = [item.counters for item in launch.lines if item.counters.gmem_requests] or [launch.counters]
    return sum(
        moved(counters)
        for counters in known
        # Bytes of a request in which every lane of the warp moves that many bits.
        if counters.gmem_bytes >= _NEARLY * counters.gmem_requests * WARP_THREADS * bits // 8
    )


def _intermediates(counters: Counters, run: Workload) -> float | None:
    outputs = sum(spec.size_bytes for spec in run.graph.output_specs)
    return _ratio(max(0, counters.gmem_store_bytes - outputs), run.least_bytes)


def _split(profile: Profile, facts: ProblemFacts, run: Workload) -> bool | None:
    """Return whether CTAs share sums; None where longer rows may turn the values passed on into parts."""
    found = completes_partials(profile, run)
    unsure = found is False and is_scaled(profile, facts) and values_passed_bytes(profile, run) > 0
    return None if unsure else found


def _row_owner(launches: Sequence[LaunchProfile]) -> str:
    """Read from barriers and exchanges which threads reduce a row together; empty without machine code."""
    if any(launch.counters.barriers for launch in launches):
        return "CTA"
    if any(launch.code is None for launch in launches):
        return ""
    return "warp" if any(_has(launch, "between lanes") for launch in launches) else "thread"


def _grouped_loads(launch: LaunchProfile) -> int:
    """Loads of the commonest width in the machine code for each line of the source that loads."""
    if launch.code is None:
        return 1
    names = by_class(launch.code).get(GLOBAL_LOADS, {})
    lines = sum(1 for item in launch.lines if item.counters.gmem_load_bytes and item.is_own)
    # Rounded down: a loop's remainder repeats its loads once.
    return max(1, max(names.values(), default=1) // max(1, lines))


def _staged(counters: Counters) -> float | None:
    stored = sum(
        access.bytes for kind, access in counters.smem_accesses.items() if kind in {"store", "async-copy"}
    )
    return _ratio(stored, counters.gmem_load_bytes)


def _multiply_adds(counters: Counters, run: Workload) -> float | None:
    """Multiply-adds on CUDA cores ÷ elements read, from shared memory where tiles are staged there."""
    largest = largest_given(run)
    if product_of(run) is None or largest is None:
        return None
    loads = max(counters.smem_load_bytes, counters.gmem_load_bytes) / DTYPE_BYTES[largest.dtype]
    flops = sum(amount for pipe, amount in counters.flops.items() if pipe.startswith("cuda."))
    return _ratio(flops / 2, loads)  # a multiply-add counts two


def _tensor_types(launches: Sequence[LaunchProfile]) -> tuple[str, ...]:
    found = {
        pipe.partition(".")[2]
        for launch in launches
        for pipe in launch.counters.flops
        if pipe[:7] == "tensor."
    }
    return tuple(sorted(found)) or (("?",) if any(_has(launch, TENSOR) for launch in launches) else ())


def _serialised_wgmma(profile: Profile) -> bool | None:
    read = any(launch.code and launch.code.language == "SASS" for launch in profile.launches)
    return serialised_wgmma(profile) is not None if read else None


def _has(launch: LaunchProfile, kind: str) -> bool:
    return launch.code is not None and kind in by_class(launch.code)
