"""A candidate that passed, once under Nsight Compute: its counters as a ``Profile``.

Only kernels compiled from the candidate's own functions are looked at, each for itself; the clocks are left
as they are, and the profile says so.
"""

from __future__ import annotations

import ast
import asyncio
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from cutegen_nb.core import nsight_metrics as names
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Evaluation, Finding, Severity
from cutegen_nb.core.nsight_names import COUNTERPARTS
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Problem
from cutegen_nb.core.profile import Profile
from cutegen_nb.gpu.nsight_errors import ABSENT, NoCounters, too_slow, why_none
from cutegen_nb.gpu.nsight_import import NAME, import_report
from cutegen_nb.gpu.nsight_profile import CLOCKS_UNTOUCHED, profile_of
from cutegen_nb.gpu.program import Ended
from cutegen_nb.gpu.tool_run import Guest, locate, run, run_folder

DEADLINE_S = 180.0
"""Starting PyTorch, the DSL and ncu takes about 15 s; the passes of each kernel come on top."""
MOST_LAUNCHES = 32
"""Launches of one call that are looked at; the others run unwatched."""


class Detail(StrEnum):
    """How much is asked for: every group of counters costs another pass over each kernel."""

    STRUCTURE = "structure"
    """What tells one structure from another: traffic, the busiest unit, occupancy. About 10 passes."""
    TUNING = "tuning"
    """With it why warps wait, the caches, and every figure by line of source. About 25 passes."""


SECTIONS = {
    Detail.STRUCTURE: ("LaunchStats", "Occupancy", "SpeedOfLight", "MemoryWorkloadAnalysis"),
    Detail.TUNING: (
        "LaunchStats", "Occupancy", "SpeedOfLight", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables",
        "ComputeWorkloadAnalysis", "InstructionStats", "SchedulerStats", "WarpStateStats", "SourceCounters",
    ),
}  # fmt: skip
"""Sections of ncu by what is asked for; a chip's own names of the metrics in them are ncu's business."""

_THREADS = tuple(
    f"smsp__sass_thread_inst_executed_op_{one}_pred_on.sum"
    for one in ("fadd", "fmul", "ffma", "hadd", "hmul", "hfma", "dadd", "dmul", "dfma")
)
_TENSOR = tuple(
    f"sm__ops_path_tensor_src_{one}.sum"
    for one in ("fp16", "bf16_dst_fp32", "tf32_dst_fp32", "fp64", "int8", "fp8")
)
_PIPES = ("adu", "alu", "cbu", "fma", "fp64", "lsu", "tensor", "tex", "tma", "uniform", "xu")
METRICS = (
    *dict.fromkeys(f"{name}.sum" for one in COUNTERPARTS for name in one.metrics),
    *_THREADS,
    *_TENSOR,
    "smsp__inst_executed.sum", "smsp__thread_inst_executed.sum", "smsp__thread_inst_executed_pred_on.sum",
    "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_sectors_srcunit_tex.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
    "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum", "gpu__time_duration.sum",
    names.ELAPSED_CYCLES, names.BUSY_CYCLES, names.L1_SHARE, names.SHARED_SHARE, names.ISSUE_SHARE,
    *names.PIPE_SHARES.values(), names.L1_HITS, names.L2_HITS,
    *(f"sm__inst_executed_pipe_{one}.sum" for one in _PIPES),
)  # fmt: skip
"""Asked for beside the sections: what has a counterpart in simulated counts, FLOPs, traffic, and what the
diagnosis argues from. A chip that lacks one says n/a for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be looked at."""

    problem: Problem
    """The problem."""
    candidate: Candidate
    """Its candidate, which passed."""
    detail: Detail = Detail.TUNING
    """How much is asked for."""
    confine_files: bool = True
    """Whether CUDA finds the device where files are confined."""
    resident_bytes: int | None = None
    """Memory that the processes may hold together."""
    deadline_s: float = DEADLINE_S
    """For all of it."""
    driver: str = ""
    """Version of the driver, for the record."""


class Counting:
    """Adds counters to evaluations, and says once why there are none."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    async def with_counters(self, passed: Evaluation, order: Order, progress: Progress) -> Evaluation:
        """`passed` with its counters; as it is, with a flag the first time, where none can be had."""
        try:
            return replace(passed, profile=await counted(order, progress))
        except NoCounters as error:
            why = str(error)
            progress(f"no counters: {why}")
            if why in self._told:
                return passed
            self._told.add(why)
            flag = Finding(kind="no-counters", message=why, severity=Severity.FLAG)
            return replace(passed, findings=(*passed.findings, flag))


async def counted(order: Order, progress: Progress) -> Profile:
    """The counters of one call of a candidate.

    Raises:
        NoCounters: there are none to be had; the message says why and what helps.
    """
    command = locate(NAME)
    if command is None:
        raise NoCounters(ABSENT)
    progress("counting under Nsight Compute")
    async with run_folder() as folder:
        report = folder / "report.ncu-rep"
        pattern = kernel_filter(order.candidate.source)
        tool = [command, *arguments(order.detail, pattern, report)]
        end = await run(tool, _guest(order), folder, {"CUTE_DSL_LINEINFO": "1"})
        if end.how is Ended.DEADLINE:
            raise too_slow(order.deadline_s)
        if not report.is_file():
            raise why_none(end.log, code=end.code, matching=pattern.removeprefix("regex:"))
        recorded = await asyncio.to_thread(import_report, report)
    if not recorded.kernels:
        raise why_none(end.log, code=end.code, matching=pattern.removeprefix("regex:"))
    driver = (f"driver {order.driver}",) if order.driver else ()
    return profile_of(recorded, notes=(*driver, CLOCKS_UNTOUCHED))


def _guest(order: Order) -> Guest:
    return Guest(
        problem=order.problem,
        candidate=order.candidate,
        confine_files=order.confine_files,
        resident_bytes=order.resident_bytes,
        deadline_s=order.deadline_s,
    )


def arguments(detail: Detail, pattern: str, report: Path) -> list[str]:
    """Options of ``ncu`` for one report."""
    return [
        "--clock-control", "none",
        "--target-processes", "all",
        "--kernel-name", pattern,
        "--launch-count", str(MOST_LAUNCHES),
        *(option for section in SECTIONS[detail] for option in ("--section", section)),
        "--metrics", ",".join(METRICS),
        "--force-overwrite",
        "--export", str(report),
    ]  # fmt: skip


def kernel_filter(source: str) -> str:
    """The filter for kernels compiled from a candidate: the DSL names them after the functions.

    A source without such a function is asked for every kernel of the DSL's.
    """
    functions = sorted(
        node.name for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and any(_is_kernel(one) for one in node.decorator_list)
    )  # fmt: skip
    if not functions:
        return "regex:^kernel_cutlass_"
    return f"regex:^kernel_cutlass_({'|'.join(re.escape(name) for name in functions)})_"


def _is_kernel(decorator: ast.expr) -> bool:
    """``@cute.kernel``, ``@kernel`` or either with arguments."""
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (isinstance(node, ast.Attribute) and node.attr == "kernel") or (
        isinstance(node, ast.Name) and node.id == "kernel"
    )
