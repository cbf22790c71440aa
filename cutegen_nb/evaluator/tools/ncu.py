"""Nsight Compute (``ncu``) around a candidate that passed: its hardware counters as a ``Profile``.

Only kernels compiled from the candidate's own functions are profiled, each by itself. Clocks are not locked,
and the profile notes that.
"""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.nsight import metrics as names
from cutegen_nb.core.nsight.names import COUNTERPARTS
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Problem
from cutegen_nb.core.profile import Profile
from cutegen_nb.evaluator.process.guarded_program import Ended
from cutegen_nb.evaluator.tools.ncu_errors import ABSENT, NoCounters, no_counters_error, too_slow
from cutegen_nb.evaluator.tools.ncu_import import NAME, import_report
from cutegen_nb.evaluator.tools.ncu_profile import CLOCKS_UNTOUCHED, profile_of
from cutegen_nb.evaluator.tools.tool_run import ToolSubject, locate, run, run_folder

DEADLINE_S = 180.0
"""Timeout in seconds: PyTorch, the DSL and ncu start in about 15 s; passes over each kernel add to that."""
MOST_LAUNCHES = 32
"""Most launches of one call that are profiled."""


class Detail(StrEnum):
    """Amount of counters to collect; every group of counters costs another pass over each kernel."""

    STRUCTURE = "structure"
    """Counters that compare structures of a kernel: traffic, busiest unit, occupancy. About 10 passes."""
    TUNING = "tuning"
    """In addition the reasons why warps wait, caches, and figures by line of source. About 25 passes."""


SECTIONS = {
    Detail.STRUCTURE: ("LaunchStats", "Occupancy", "SpeedOfLight", "MemoryWorkloadAnalysis"),
    Detail.TUNING: (
        "LaunchStats", "Occupancy", "SpeedOfLight", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables",
        "ComputeWorkloadAnalysis", "InstructionStats", "SchedulerStats", "WarpStateStats", "SourceCounters",
    ),
}  # fmt: skip
"""Sections of ncu by amount of counters; ncu itself knows a chip's names for the metrics in a section."""

_THREADS = tuple(
    f"smsp__sass_thread_inst_executed_op_{one}_pred_on.sum"
    for one in ("fadd", "fmul", "ffma", "hadd", "hmul", "hfma", "dadd", "dmul", "dfma")
)
"""Counts of floating-point instructions by thread, predicated-off threads excluded."""
_TENSOR = tuple(
    f"sm__ops_path_tensor_src_{one}.sum"
    for one in ("fp16", "bf16_dst_fp32", "tf32_dst_fp32", "fp64", "int8", "fp8")
)
"""Counts of operations on the tensor path by source type."""
_PIPES = ("adu", "alu", "cbu", "fma", "fp64", "lsu", "tensor", "tex", "tma", "uniform", "xu")
"""Pipes of an SM whose instructions are counted."""
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
"""Metrics collected beside the sections: counterparts of simulated counts, FLOPs, traffic, and those that the
diagnosis uses. ncu gives n/a for metrics that a chip lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRequest:
    """Candidate to profile, with its limits."""

    problem: Problem
    """The problem."""
    candidate: Candidate
    """Candidate for it, which passed."""
    detail: Detail = Detail.TUNING
    """Amount of counters to collect."""
    confine_files: bool = True
    """True to confine file access; False where CUDA finds no device under that confinement."""
    resident_bytes: int | None = None
    """Most resident memory of all processes together, in bytes; None for no limit."""
    deadline_s: float = DEADLINE_S
    """Timeout of the whole run, in seconds."""
    driver: str = ""
    """Version of the driver, noted in the profile."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the evaluator's processes: the GPU that it is bound to."""


class CounterCollector:
    """Adds counters to evaluations, and reports each reason for their absence once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    async def with_counters(
        self, passed: Evaluation, order: ProfileRequest, progress: Progress
    ) -> Evaluation:
        """Return `passed` with its counters; without counters, a flag gives each reason for that once."""
        try:
            return replace(passed, profile=await collect_counters(order, progress))
        except NoCounters as error:
            why = str(error)
            progress(f"no counters: {why}")
            if why in self._told:
                return passed
            self._told.add(why)
            flag = Finding(kind="no-counters", message=why, severity=Severity.FLAG)
            return replace(passed, findings=(*passed.findings, flag))


async def collect_counters(order: ProfileRequest, progress: Progress) -> Profile:
    """Profile one call of a candidate.

    Raises:
        NoCounters: ncu gave no counters; the message says why and what helps.
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
            raise no_counters_error(end.log, code=end.code, matching=pattern.removeprefix("regex:"))
        recorded = await asyncio.to_thread(import_report, report)
    if not recorded.kernels:
        raise no_counters_error(end.log, code=end.code, matching=pattern.removeprefix("regex:"))
    driver = (f"driver {order.driver}",) if order.driver else ()
    return profile_of(recorded, notes=(*driver, CLOCKS_UNTOUCHED))


def _guest(order: ProfileRequest) -> ToolSubject:
    return ToolSubject(
        problem=order.problem,
        candidate=order.candidate,
        confine_files=order.confine_files,
        resident_bytes=order.resident_bytes,
        deadline_s=order.deadline_s,
        variables=order.variables,
    )


def arguments(detail: Detail, pattern: str, report: Path) -> list[str]:
    """Make the options of ``ncu`` for one report."""
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
    """Make ncu's filter for the kernels of a candidate, which the DSL names after their functions.

    For a source without a kernel function the filter lets every kernel of the DSL pass.
    """
    functions = sorted(
        node.name for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and any(_is_kernel(one) for one in node.decorator_list)
    )  # fmt: skip
    if not functions:
        return "regex:^kernel_cutlass_"
    return f"regex:^kernel_cutlass_({'|'.join(re.escape(name) for name in functions)})_"


def _is_kernel(decorator: ast.expr) -> bool:
    """Return whether a decorator is ``@cute.kernel``, ``@kernel`` or either with arguments."""
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (isinstance(node, ast.Attribute) and node.attr == "kernel") or (
        isinstance(node, ast.Name) and node.id == "kernel"
    )
