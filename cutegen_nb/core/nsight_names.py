"""Our counts and Nsight Compute's: the map from one to the other, as data.

A figure is named by its path in ``Counters``: ``gmem_accesses.load.passes``. Metrics are those of GH100 and
of ncu 2025 and later, without the ``.sum`` that each is read with. Instructions of PTX and of the machine are
never the same thing, so instruction counts have no counterpart but for tensor cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cutegen_nb.core.profile import Counters


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterpart:
    """Figures of ours whose sum is the sum of some metrics of Nsight Compute."""

    figures: tuple[str, ...]
    """Paths in ``Counters``: a field, or a field, a kind and a figure of ``Access``."""
    metrics: tuple[str, ...] = ()
    """Names of the metrics; empty where there is no counterpart."""
    note: str = ""
    """Where the meanings part, or why there is no counterpart."""

    def count(self, counters: Counters) -> int:
        """Our side of it."""
        return sum(figure(counters, path) for path in self.figures)


def figure(counters: Counters, path: str) -> int:
    """The figure at a path; 0 for a kind that did not occur.

    Raises:
        AttributeError: the path names no field.
    """
    field, _, rest = path.partition(".")
    value: Any = getattr(counters, field)
    if not rest:
        return sum(value.values()) if isinstance(value, dict) else int(value)
    if rest in value:
        return int(value[rest])
    kind, _, name = rest.rpartition(".")
    return int(getattr(value[kind], name)) if kind in value else 0


def _global(kinds: tuple[str, ...], operations: tuple[str, ...], note: str = "") -> tuple[Counterpart, ...]:
    return tuple(
        Counterpart(
            figures=tuple(f"gmem_accesses.{kind}.{figure}" for kind in kinds),
            metrics=tuple(f"l1tex__t_{what}_pipe_lsu_mem_global_op_{name}" for name in operations),
            note=note,
        )
        for what, figure in (("requests", "requests"), ("sectors", "passes"))
    )


_ASYNC = "cp.async.ca is counted as cache_access, cp.async.cg as cache_bypass"
_IDEAL = "Nsight's ideal takes every thread's bytes as different; ours counts bytes asked for twice once"
_MACHINE = "PTX instructions; the machine executes others"

COUNTERPARTS: tuple[Counterpart, ...] = (
    *_global(("load",), ("ld",)),
    *_global(("store",), ("st",)),
    *_global(
        ("atomic", "reduction"), ("atom", "red"), "the assembler makes a reduction of an atomic nobody reads"
    ),
    Counterpart(
        figures=("gmem_accesses.async-copy.requests",),
        metrics=(
            "sm__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts_cache_access",
            "sm__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts_cache_bypass",
        ),
        note=_ASYNC,
    ),
    Counterpart(
        figures=("gmem_accesses.async-copy.passes",),
        metrics=(
            "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access",
            "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass",
        ),
        note=_ASYNC,
    ),
    Counterpart(figures=("gmem_ideal_sectors",), note=_IDEAL),
    Counterpart(figures=("smem_wavefronts",), metrics=("l1tex__data_pipe_lsu_wavefronts_mem_shared",)),
    Counterpart(
        figures=("smem_accesses.load.passes",),
        metrics=("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld",),
        note="the hardware counter l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld contains ldmatrix too",
    ),
    Counterpart(
        figures=("smem_accesses.load-matrix.passes",),
        metrics=("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm",),
    ),
    Counterpart(
        figures=("smem_accesses.store.passes",),
        metrics=("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st",),
    ),
    Counterpart(
        figures=("smem_accesses.atomic.passes",),
        metrics=("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_atom",),
        note="threads that meet at one address take turns in hardware; we count the passes over the banks",
    ),
    Counterpart(
        figures=("smem_accesses.async-copy.passes",),
        metrics=("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts",),
    ),
    Counterpart(figures=("smem_ideal_wavefronts",), note=_IDEAL),
    Counterpart(
        figures=("instructions.tensor.f16", "instructions.tensor.bf16", "instructions.tensor.tf32"),
        metrics=("sm__inst_executed_pipe_tensor_op_hmma",),
        note="an m8n8k4 product is several instructions of the machine",
    ),
    Counterpart(figures=("instructions.tensor.s8",), metrics=("sm__inst_executed_pipe_tensor_op_imma",)),
    Counterpart(figures=("instructions.tensor.f64",), metrics=("sm__inst_executed_pipe_tensor_op_dmma",)),
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
    Counterpart(figures=("barriers",), note="no metric counts barrier instructions alone"),
    Counterpart(figures=("branches",), note=f"{_MACHINE}: short branches become predicates"),
    Counterpart(
        figures=("divergent_branches",),
        note=f"{_MACHINE}: smsp__sass_branch_targets_threads_divergent is another count",
    ),
)
"""Every count we have, with its counterpart or the reason why there is none."""
