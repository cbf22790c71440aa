"""Conversion of Nsight Compute's records to a ``Profile``, the type of simulated counts too.

Metrics fill the counters of the same meaning (``core.nsight.names`` is the map). Instruction counts are of
SASS instructions, not PTX. Counters that a report lacks stay 0, and metrics without a simulated counterpart
are kept under their own names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace

from cutegen_nb.core.nsight import metrics as names
from cutegen_nb.core.profile import (
    SECTOR_BYTES,
    Access,
    Counters,
    KernelResources,
    LaunchProfile,
    LineCounters,
    Metric,
    Profile,
    ProfileSource,
)
from cutegen_nb.evaluator.tools.ncu_report import Recorded, RecordedInstruction, RecordedKernel

CLOCKS_UNTOUCHED = "clocks not locked"
"""Note of a profile taken with ``--clock-control none``; its times may differ from times without ncu."""
SHARED_UNITS = "without units that a part of a split GPU (MIG) shares with others"
"""Note of a profile in which shared units of a MIG instance gave no numbers."""
_SASS_SECTORS = "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_{}.sum"
"""Sectors of global accesses, counted by instruction."""
_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"
"""Requests to global memory, counted by the L1 cache."""
_ASYNC_REQUESTS = "smsp__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts.sum"
"""Requests of asynchronous copies (LDGSTS), counted by instruction."""
_WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
"""Wavefronts of shared memory by SM sub-partition."""
_SM_WAVEFRONTS = "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
"""The same wavefronts by SM."""
_BYTES_A_SECTOR = "smsp__sass_average_data_bytes_per_sector_mem_global_op_{}.ratio"
"""Bytes that threads asked for in each sector, on average; for loads and stores."""
_THREADS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
"""Floating-point instructions by thread, predicated-off threads excluded."""
_PIPES = ("alu", "fma", "fp16", "fp64", "lsu", "tex", "uniform", "xu", "adu", "cbu", "tensor", "tma")
"""Pipes of an SM by ncu's names."""
_ARITHMETIC = {
    "cuda.f32": ("fadd", "fmul", "ffma"),
    "cuda.f16": ("hadd", "hmul", "hfma"),
    "cuda.f64": ("dadd", "dmul", "dfma"),
}
"""Add, multiply and multiply-add instructions by pipe and type."""
_TENSOR = {
    "tensor.f16": ("fp16",), "tensor.bf16": ("bf16_dst_fp32",), "tensor.tf32": ("tf32_dst_fp32",),
    "tensor.f64": ("fp64",), "tensor.s8": ("int8",), "tensor.fp8": ("fp8_sparsity_off", "fp8_sparsity_on"),
}  # fmt: skip
"""Source types in ``sm__ops_path_tensor_src_…`` by pipe and type."""
_LOAD, _STORE, _BOTH = 2, 4, 6
"""Values of ``memory_access_type``; asynchronous copies from global to shared memory are both."""
_WAITS_FOR_LOADS = names.STALL_SAMPLES.format("long_scoreboard")
"""Metric of the samples in which a warp waited for a load."""
_WARP = 32
"""Threads in a warp."""
_CONSTANTS = "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum"
"""Count of HFMA2.MMA, an instruction of the tensor pipe with which kernels make constants."""
_STALL = re.compile(r"smsp__pcsamp_warps_issue_stalled_(\w+?)(_not_issued)?")
"""Metrics of stall samples: the reason, and a mark of samples in which nothing was issued."""


def profile_of(recorded: Recorded, *, notes: Iterable[str] = ()) -> Profile:
    """Make the profile of every kernel in a report, one launch each, in launch order."""
    told = (recorded.tool or "Nsight Compute", recorded.device and f"on {recorded.device}", recorded.driver)
    made_by = ", ".join(
        part for part in (" ".join(one for one in told[:2] if one), told[2], recorded.date) if part
    )
    noted = list(notes)
    if re.search(r"--clock-control[ =]none", recorded.command) and CLOCKS_UNTOUCHED not in noted:
        noted.append(CLOCKS_UNTOUCHED)
    if any(_withheld(one) for one in recorded.kernels):
        noted.append(SHARED_UNITS)
    return Profile(
        source=ProfileSource.NSIGHT,
        device=recorded.device or recorded.architecture or "a GPU",
        launches=tuple(launch_of(one, recorded.architecture) for one in recorded.kernels),
        made_by="; ".join((made_by, *noted)),
    )


def _withheld(kernel: RecordedKernel) -> bool:
    """Return whether a unit gave no number: ncu writes nan for units that MIG instances share."""
    return any(names.is_kept(name) and not math.isfinite(one.value) for name, one in kernel.metrics.items())


def launch_of(kernel: RecordedKernel, architecture: str) -> LaunchProfile:
    """Convert one launch: totals, lines, resources and the metrics that only hardware has."""
    figures = _Figures(kernel)
    # The traffic of DRAM in sectors stands in for distinct sectors, which no metric counts.
    dram = figures.whole(names.DRAM_READ) + figures.whole(names.DRAM_WRITE)
    return LaunchProfile(
        kernel=kernel.kernel,
        grid=kernel.grid,
        block=kernel.block,
        dynamic_smem_bytes=figures.whole(names.DYNAMIC_SHARED),
        static_smem_bytes=figures.whole(names.STATIC_SHARED),
        counters=_counters(figures, kernel.instructions),
        lines=_lines(kernel.instructions),
        gmem_distinct_sectors=round(dram / SECTOR_BYTES),
        resources=_resources(figures, architecture, kernel.resources),
        code=kernel.code,
        metrics={
            name: Metric(value=one.value, unit=one.unit or names.unit_of(name))
            for name, one in sorted(kernel.metrics.items())
            if names.is_kept(name) and math.isfinite(one.value)
        },
    )


class _Figures:
    """Metrics of a kernel by name, with 0 for missing ones in sums."""

    def __init__(self, kernel: RecordedKernel) -> None:
        self._metrics = kernel.metrics

    def value(self, name: str) -> float | None:
        """Value of a metric; None where it was not collected or a shared unit of a MIG instance gave nan."""
        found = self._metrics.get(name)
        return found.value if found and math.isfinite(found.value) else None

    def whole(self, name: str) -> int:
        return round(self.value(name) or 0.0)

    def total(self, name: str) -> int:
        """Sum of a metric over the launch; rate per cycle × cycles where only the rate was collected."""
        found = self.value(name)
        if found is not None:
            return round(found)
        rate = self.value(f"{name}.per_cycle_elapsed")
        clocks = self.value(names.WARP_CYCLES) or self.value(names.ELAPSED_CYCLES)
        return round(rate * clocks) if rate and clocks else 0

    def first(self, *candidates: str) -> int:
        return next((round(value) for one in candidates if (value := self.value(one)) is not None), 0)


def _counters(figures: _Figures, instructions: tuple[RecordedInstruction, ...]) -> Counters:
    by_line = _summed(instructions)
    gmem, smem = _global(figures, by_line), _shared(figures, by_line)
    return replace(
        by_line,
        warp_instructions=figures.first("smsp__inst_executed.sum", "inst_executed"),
        thread_instructions=figures.first("smsp__thread_inst_executed.sum", "thread_inst_executed"),
        thread_instructions_on=figures.first(
            "smsp__thread_inst_executed_pred_on.sum", "thread_inst_executed_true"
        ),
        instructions=_pipes(figures),
        flops=_flops(figures),
        gmem_load_bytes=gmem["load"].bytes if "load" in gmem else 0,
        gmem_store_bytes=gmem["store"].bytes if "store" in gmem else 0,
        gmem_load_sectors=_passes(gmem, "load", "async-copy"),
        gmem_store_sectors=_passes(gmem, "store"),
        gmem_atomic_sectors=_passes(gmem, "atomic", "reduction"),
        gmem_requests=sum(one.requests for one in gmem.values()),
        gmem_accesses=gmem,
        smem_wavefronts=_passes(smem, *smem) or by_line.smem_wavefronts,
        smem_accesses=smem,
        local_load_bytes=figures.total(names.LOCAL_LOADS) * SECTOR_BYTES,
        local_store_bytes=figures.total(names.LOCAL_STORES) * SECTOR_BYTES,
        branches=figures.first("smsp__inst_executed_op_branch.sum"),
        divergent_branches=figures.first(
            "smsp__sass_branch_targets_threads_divergent.sum", "smsp__branch_targets_threads_divergent"
        ),
    )


def _pipes(figures: _Figures) -> dict[str, int]:
    """Instructions by pipe; empty where only the tensor pipe was counted, as in ncu's own metric sets."""
    counted = {pipe: figures.total(f"sm__inst_executed_pipe_{pipe}.sum") for pipe in _PIPES}
    counted["tensor"] = max(0, counted["tensor"] - _constants(figures))
    found = {pipe: amount for pipe, amount in counted.items() if amount}
    return found if found.keys() - {"tensor"} else {}


def _constants(figures: _Figures) -> int:
    """HFMA2.MMA instructions, which make constants.

    Where they were not counted, they are all instructions of the tensor pipe in a kernel without products,
    and taken as 0 in any other.
    """
    counted = figures.value(_CONSTANTS)
    if counted is not None:
        return round(counted)
    types = [one for row in _TENSOR.values() for one in row]
    products = any(figures.total(f"sm__ops_path_tensor_src_{one}.sum") for one in types)
    return 0 if products else figures.total("sm__inst_executed_pipe_tensor.sum")


def _flops(figures: _Figures) -> dict[str, int]:
    """FLOPs by pipe and type: add + mul + 2 · fma over threads, and the tensor cores' own counts.

    SASS also adds halves to convert them and multiplies halves to make constants. So a kernel without
    products of halves counts no half-precision arithmetic.
    """
    found = {}
    for pipe, (add, multiply, both) in _ARITHMETIC.items():
        # Half-precision instructions are packed: HADD2, HMUL2 and HFMA2 work on two halves a thread.
        lanes = 2 if pipe == "cuda.f16" else 1
        products = figures.total(_THREADS.format(multiply))
        fused = figures.total(_THREADS.format(both))
        if pipe == "cuda.f16":
            # HFMA2.MMA counts as hfma too. It is counted once a warp, hfma once a thread.
            fused = max(0, fused - _WARP * _constants(figures))
            if not products + fused:
                continue
        found[pipe] = lanes * (figures.total(_THREADS.format(add)) + products + 2 * fused)
    for pipe, sources in _TENSOR.items():
        found[pipe] = sum(figures.total(f"sm__ops_path_tensor_src_{one}.sum") for one in sources)
    return {pipe: amount for pipe, amount in found.items() if amount}


def _global(figures: _Figures, by_line: Counters) -> dict[str, Access]:
    """Requests and sectors of global memory by kind; the ideal comes from the lines, where collected."""
    asynchronous = figures.first(_ASYNC_REQUESTS, _REQUESTS.format("ldgsts_cache_access"))
    # The unit counts requests of asynchronous copies (LDGSTS) with those of loads.
    found = {
        "load": (max(0, figures.first(_REQUESTS.format("ld")) - asynchronous), "ld"),
        "async-copy": (asynchronous, "ldgsts"),
        "store": (figures.first(_REQUESTS.format("st")), "st"),
        "atomic": (figures.first(_REQUESTS.format("atom")), "atom"),
        "reduction": (figures.first(_REQUESTS.format("red")), "red"),
    }
    made = {}
    for kind, (requests, way) in found.items():
        passes = figures.first(
            _SASS_SECTORS.format(way), f"l1tex__t_sectors_pipe_lsu_mem_global_op_{way}.sum"
        )
        if not requests and not passes:
            continue
        lines = by_line.gmem_accesses.get(kind, Access())
        ideal = min(lines.ideal, passes) or passes
        used = figures.value(_BYTES_A_SECTOR.format(way)) or 0.0
        made[kind] = Access(requests=requests, bytes=round(used * passes), passes=passes, ideal=ideal)
    return made


def _shared(figures: _Figures, by_line: Counters) -> dict[str, Access]:
    """Requests and wavefronts of shared memory by kind; a wavefront is one pass of the data stage."""
    ways = {
        "load": "ld", "load-matrix": "ldsm", "store": "st", "store-matrix": "stsm", "atomic": "atom",
        "async-copy": "ldgsts",
    }  # fmt: skip
    made = {}
    for kind, way in ways.items():
        passes = figures.first(_SM_WAVEFRONTS.format(way), _WAVEFRONTS.format(way))
        if not passes:
            continue
        # Counts by line do not tell loads of words from loads of matrices: both take the lines' efficiency.
        lines = by_line.smem_accesses.get(kind.removesuffix("-matrix"), Access())
        matrices = figures.whole(f"smsp__inst_executed_op_{way}.sum") if kind.endswith("-matrix") else 0
        made[kind] = Access(
            requests=matrices or lines.requests,
            passes=passes,
            ideal=round(passes * lines.efficiency),
        )
    return made


def _passes(accesses: dict[str, Access], *kinds: str) -> int:
    return sum(accesses[kind].passes for kind in kinds if kind in accesses)


def _resources(
    figures: _Figures, architecture: str, compiled: KernelResources | None
) -> KernelResources | None:
    """Resources of the launch; spills and stack are known from the cubin alone."""
    registers = figures.whole(names.REGISTERS)
    if not registers:
        return compiled
    static = figures.whole(names.STATIC_SHARED)
    if compiled is not None:
        return replace(compiled, registers=registers, static_smem_bytes=static)
    return KernelResources(architecture=architecture, registers=registers, static_smem_bytes=static)


# -- by line -------------------------------------------------------------------------------------------------
def _lines(instructions: tuple[RecordedInstruction, ...]) -> tuple[LineCounters, ...]:
    by_place: dict[tuple[str, int], list[RecordedInstruction]] = {}
    awaited = _awaited(instructions)
    for one in instructions:
        by_place.setdefault((one.file, one.line), []).append(one)
    if set(by_place) <= {("", 0)}:
        return ()
    return tuple(
        LineCounters(
            file=file,
            line=line,
            counters=replace(_summed(by_place[file, line]), awaited_samples=awaited.get((file, line), 0)),
        )
        for file, line in sorted(by_place)
    )


def _awaited(instructions: tuple[RecordedInstruction, ...]) -> dict[tuple[str, int], int]:
    """Samples of warps waiting for a load, by the load's file and line.

    The load is taken to be the last one before the waiting instruction in code order. Before the first load
    it is the last load of the kernel, as in a loop whose loads stand at its end.
    """
    loads = [one for one in instructions if _is_load(one)]
    found: dict[tuple[str, int], int] = {}
    before = loads[-1] if loads else None
    for one in instructions:
        waiting = round(one.counts.get(_WAITS_FOR_LOADS, 0))
        if waiting and before is not None:
            found[before.file, before.line] = found.get((before.file, before.line), 0) + waiting
        if _is_load(one):
            before = one
    return found


def _is_load(one: RecordedInstruction) -> bool:
    moved = one.counts.get(names.LINE_SECTORS) or one.counts.get(names.LINE_LOCAL)
    return bool(moved) and round(one.counts.get("memory_access_type", 0)) in {_LOAD, _BOTH}


def _summed(instructions: Iterable[RecordedInstruction]) -> Counters:
    total = Counters()
    for one in instructions:
        total += _instruction(one)
    return total


def _instruction(one: RecordedInstruction) -> Counters:
    """Counters of one instruction; ``memory_access_type`` gives its kind of access."""
    get = {name: round(value) for name, value in one.counts.items()}
    sectors, wavefronts = get.get(names.LINE_SECTORS, 0), get.get(names.LINE_WAVEFRONTS, 0)
    ideal_sectors = get.get(names.LINE_SECTORS_IDEAL, 0)
    ideal_wavefronts = get.get(names.LINE_WAVEFRONTS_IDEAL, 0)
    local = get.get(names.LINE_LOCAL, 0) * SECTOR_BYTES
    executed, way = get.get("inst_executed", 0), get.get("memory_access_type", 0)
    # Any other access type is an atomic.
    kind = {_LOAD: "load", _STORE: "store", _BOTH: "async-copy"}.get(way, "atomic")
    stalls = {
        found[1]: amount
        for name, amount in get.items()
        # Samples "not issued" (second group) are part of the samples of the same reason.
        if amount and (found := _STALL.fullmatch(name)) and not found[2]
    }
    return Counters(
        warp_instructions=executed,
        thread_instructions=get.get("thread_inst_executed", 0),
        thread_instructions_on=get.get("thread_inst_executed_true", 0),
        gmem_load_sectors=sectors if kind in {"load", "async-copy"} else 0,
        gmem_store_sectors=sectors if kind == "store" else 0,
        gmem_atomic_sectors=sectors if kind == "atomic" else 0,
        gmem_ideal_sectors=ideal_sectors,
        gmem_requests=executed if sectors else 0,
        gmem_accesses=_access(kind, executed, sectors, ideal_sectors),
        smem_wavefronts=wavefronts,
        smem_ideal_wavefronts=ideal_wavefronts,
        smem_accesses=_access(kind, executed, wavefronts, ideal_wavefronts),
        local_load_bytes=local if kind == "load" else 0,
        local_store_bytes=local if kind == "store" else 0,
        divergent_branches=get.get("smsp__branch_targets_threads_divergent", 0),
        stall_samples=stalls,
    )


def _access(kind: str, requests: int, passes: int, ideal: int) -> dict[str, Access]:
    return {kind: Access(requests=requests, passes=passes, ideal=ideal)} if passes else {}
