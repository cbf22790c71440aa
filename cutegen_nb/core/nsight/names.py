"""Map between the simulator's counts and Nsight Compute's metrics.

A figure is named by its path in ``Counters``: ``gmem_accesses.load.passes``. Metrics are those of GH100 and
of ncu 2025 and later, written without the suffix ``.sum``. A PTX instruction is not a machine instruction, so
only the instruction counts of tensor cores have a counterpart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cutegen_nb.core.profile import Counters


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterpart:
    """Figures of ``Counters`` whose sum equals the sum of some Nsight Compute metrics."""

    figures: tuple[str, ...]
    """Paths in ``Counters``: a field, or a field, a kind and a figure of ``Access``."""
    metrics: tuple[str, ...] = ()
    """Names of the metrics; empty where there is no counterpart."""
    note: str = ""
    """Difference in meaning, or the reason why there is no counterpart."""

    def count(self, counters: Counters) -> int:
        """Sum of the figures in `counters`."""
        return sum(figure(counters, path) for path in self.figures)


def figure(counters: Counters, path: str) -> int:
    """Return the figure at a path; 0 for a kind that did not occur.

    Raises AttributeError when the path names no field.
    """
    field, _, rest = path.partition(".")
    value: Any = getattr(counters, field)
    if not rest:
        return sum(value.values()) if isinstance(value, dict) else int(value)
    # A key may hold a dot itself (``tensor.f16``), so the whole rest is tried as a key first.
    if rest in value:
        return int(value[rest])
    kind, _, name = rest.rpartition(".")
    return int(getattr(value[kind], name)) if kind in value else 0


_SECTORS = "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_"
_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_"
_WAVEFRONTS = "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_"
_EXACT = (
    "counted by instruction; the unit's own counter, l1tex__t_sectors_pipe_lsu_mem_global_op_{}, counts a "
    "few more now and then"
)
_TURNS = "the assembler makes a reduction of an atomic nobody reads"
_IDEAL = "Nsight's ideal takes every thread's bytes as different; ours counts bytes asked for twice once"
_MACHINE = "PTX instructions; the machine executes others"
_HMMA = (
    "the metric counts HFMA2.MMA too, with which the machine makes constants: take "
    "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2 from it. m8n8k4 is several instructions"
)

COUNTERPARTS: tuple[Counterpart, ...] = (
    Counterpart(
        figures=("gmem_accesses.load.requests", "gmem_accesses.async-copy.requests"),
        metrics=(f"{_REQUESTS}ld",),
        note="the unit counts requests of asynchronous copies with those of loads",
    ),
    Counterpart(figures=("gmem_accesses.store.requests",), metrics=(f"{_REQUESTS}st",)),
    Counterpart(
        figures=("gmem_accesses.atomic.requests", "gmem_accesses.reduction.requests"),
        metrics=(f"{_REQUESTS}atom", f"{_REQUESTS}red"),
        note=_TURNS,
    ),
    Counterpart(
        figures=("gmem_accesses.async-copy.requests",),
        metrics=("smsp__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts",),
    ),
    Counterpart(
        figures=("gmem_accesses.load.passes",),
        metrics=(f"{_SECTORS}ld",),
        note=f"{_EXACT.format('ld')}, and those of asynchronous copies with them",
    ),
    Counterpart(
        figures=("gmem_accesses.store.passes",), metrics=(f"{_SECTORS}st",), note=_EXACT.format("st")
    ),
    Counterpart(
        figures=("gmem_accesses.atomic.passes", "gmem_accesses.reduction.passes"),
        metrics=(f"{_SECTORS}atom", f"{_SECTORS}red"),
        note=f"{_TURNS}; the unit's own counters count a sector again for each turn at one of its words",
    ),
    Counterpart(figures=("gmem_accesses.async-copy.passes",), metrics=(f"{_SECTORS}ldgsts",)),
    Counterpart(figures=("gmem_ideal_sectors",), note=_IDEAL),
    Counterpart(
        figures=("smem_wavefronts",),
        metrics=tuple(f"{_WAVEFRONTS}{name}" for name in ("ld", "ldsm", "st", "stsm", "atom", "ldgsts")),
        note="the unit's own sum, l1tex__data_pipe_lsu_wavefronts_mem_shared, contains what every warp and "
        "every barrier causes, and lacks copies past the L1 cache",
    ),
    Counterpart(figures=("smem_accesses.load.passes",), metrics=(f"{_WAVEFRONTS}ld",)),
    Counterpart(figures=("smem_accesses.load-matrix.passes",), metrics=(f"{_WAVEFRONTS}ldsm",)),
    Counterpart(figures=("smem_accesses.store.passes",), metrics=(f"{_WAVEFRONTS}st",)),
    Counterpart(figures=("smem_accesses.store-matrix.passes",), metrics=(f"{_WAVEFRONTS}stsm",)),
    Counterpart(
        figures=("smem_accesses.atomic.passes", "smem_accesses.reduction.passes"),
        metrics=(f"{_WAVEFRONTS}atom",),
        note="where one lane acts for a warp that meets at one word, the assembler may take another way",
    ),
    Counterpart(figures=("smem_accesses.async-copy.passes",), metrics=(f"{_WAVEFRONTS}ldgsts",)),
    Counterpart(figures=("smem_ideal_wavefronts",), note=_IDEAL),
    Counterpart(
        figures=("instructions.tensor.f16", "instructions.tensor.bf16", "instructions.tensor.tf32"),
        metrics=("sm__inst_executed_pipe_tensor_op_hmma",),
        note=_HMMA,
    ),
    Counterpart(
        figures=("instructions.tensor.s8", "instructions.tensor.b1"),
        metrics=("sm__inst_executed_pipe_tensor_op_imma",),
    ),
    Counterpart(figures=("instructions.tensor.f64",), metrics=("sm__inst_executed_pipe_tensor_op_dmma",)),
    Counterpart(
        figures=("instructions.tensor.s4", "instructions.tensor.fp8"),
        note="no unit of their own on sm_90: the assembler writes them out with others (hmma, imma)",
    ),
    Counterpart(figures=("warp_instructions",), note=f"{_MACHINE}: smsp__inst_executed is another count"),
    Counterpart(
        figures=("thread_instructions",), note=f"{_MACHINE}: smsp__thread_inst_executed is another count"
    ),
    Counterpart(
        figures=("thread_instructions_on",),
        note=f"{_MACHINE}: smsp__thread_inst_executed_pred_on is another count",
    ),
    Counterpart(
        figures=("flops",),
        note="smsp__sass_thread_inst_executed_op_{fadd,fmul,ffma}_pred_on count what the assembler made of "
        "them; divisions, roots and special functions become several",
    ),
    Counterpart(
        figures=("gmem_load_bytes",), note="bytes that threads ask for; Nsight counts what caches move"
    ),
    Counterpart(
        figures=("gmem_store_bytes",), note="bytes that threads ask for; Nsight counts what caches move"
    ),
    Counterpart(
        figures=("local_load_bytes",),
        note="local memory as PTX declares it; l1tex__t_sectors_pipe_lsu_mem_local_op_ld counts what the "
        "compiler left there, and spills",
    ),
    Counterpart(
        figures=("local_store_bytes",),
        note="as local_load_bytes; l1tex__t_sectors_pipe_lsu_mem_local_op_st",
    ),
    Counterpart(
        figures=("gmem_waits",),
        note="no metric counts waits; where a warp waits, long_scoreboard among stall_samples says it",
    ),
    Counterpart(
        figures=("gmem_wait_instructions",), note="no metric counts what is issued between a load and its use"
    ),
    Counterpart(
        figures=("stall_samples",),
        note="Nsight's own samples (smsp__pcsamp_sample_buffer…), by reason; the simulator has no clock to "
        "sample by",
    ),
    Counterpart(
        figures=("awaited_samples",), note="of stall_samples, put to the load that is waited for; no metric"
    ),
    Counterpart(figures=("products",), note="of tcgen05.mma, by shape; no Blackwell GPU was read"),
    Counterpart(figures=("tensor_load_bytes",), note="of tensor memory; no Blackwell GPU was read"),
    Counterpart(figures=("tensor_store_bytes",), note="of tensor memory; no Blackwell GPU was read"),
    Counterpart(figures=("barriers",), note="no metric counts barrier instructions alone"),
    Counterpart(figures=("branches",), note=f"{_MACHINE}: short branches become predicates"),
    Counterpart(
        figures=("divergent_branches",),
        note=f"{_MACHINE}: smsp__sass_branch_targets_threads_divergent is another count",
    ),
)
"""Every count of ``Counters``, with its counterpart or the reason why there is none."""
