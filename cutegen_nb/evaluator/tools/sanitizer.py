"""compute-sanitizer around a candidate that passed: one subprocess for each of its tools.

The tools slow a kernel down ten- to a thousandfold, so they run at the small size that the simulator would
take. A kernel may be right at the problem's own size only. A finding at the small size therefore decides only
if the tool finds it at the problem's own size too; otherwise it is a flag.

Where file access cannot be confined, because CUDA would find no device, a candidate could overwrite its own
report. By then the candidate has passed everything else, and `confinement` in the report says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import CheckResult, CheckState, Evaluation, Judged
from cutegen_nb.core.finding import Severity
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Problem, Workload
from cutegen_nb.evaluator.process import guarded_program, process_tree
from cutegen_nb.evaluator.process.guarded_program import Ended
from cutegen_nb.evaluator.tools import sanitizer_checks
from cutegen_nb.evaluator.tools.sanitizer_checks import SanitizerFinding, Tool
from cutegen_nb.evaluator.tools.sanitizer_report import Report, read_report
from cutegen_nb.evaluator.tools.tool_run import ToolSubject, locate, run, run_folder

DEADLINE_S = 90.0
"""Timeout in seconds for one tool at one size: imports and compilation take 10 s under a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SanitizerRequest:
    """Candidate to check, with its limits."""

    problem: Problem
    """The problem."""
    candidate: Candidate
    """Candidate for it, which passed."""
    sizes: tuple[Workload, ...]
    """Sizes of the problem, the smallest first, its own last."""
    confine_files: bool
    """True to confine file access; False where CUDA finds no device under that confinement."""
    resident_bytes: int | None = None
    """Most resident memory of one tool's processes together, in bytes; None for no limit."""
    deadline_s: float = DEADLINE_S
    """Timeout in seconds for one tool at one size."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the evaluator's processes: the GPU that it is bound to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """Result of one tool at one size."""

    found: tuple[SanitizerFinding, ...] = ()
    """Findings about the candidate."""
    note: str = ""
    """Inputs that the tool ran on, and the number of reports left out."""
    failed: str = ""
    """Reason why the tool gave no result; empty where it gave one."""


async def through_tools(passed: Evaluation, order: SanitizerRequest, progress: Progress) -> Evaluation:
    """Add the results of every tool to `passed`; once a tool fails the candidate, later ones do not run."""
    tool_path = locate(sanitizer_checks.NAME)
    evaluation = passed
    for tool in sanitizer_checks.TOOLS:
        if tool_path is None:
            evaluation = _noted(evaluation, tool, CheckState.NOT_RUN, sanitizer_checks.ABSENT)
            continue
        progress(f"running {sanitizer_checks.NAME} {tool.name}")
        evaluation = _with(evaluation, tool, await looked(tool_path, tool, order))
        if not evaluation.passed:
            break
    return evaluation


async def looked(tool_path: str, tool: Tool, order: SanitizerRequest) -> ToolResult:
    """Run a tool at the smallest size at which the candidate runs.

    A finding that decides is sought at the problem's own size too, and is a flag where it is not found there.
    """
    look = ToolResult(failed="no size was tried")
    for size in order.sizes:
        look = await _look(tool_path, tool, order, size)
        if not look.failed:
            break
    own = order.sizes[-1]
    if look.failed or size is own or not any(item.verdict for item in look.found):
        return look
    again = await _look(tool_path, tool, order, own)
    kinds = {item.finding.kind for item in again.found if item.verdict}
    if again.failed:
        return replace(look, found=_doubted(look.found, f"At the problem's own size: {again.failed}."))
    if not kinds:
        return replace(look, found=_doubted(look.found, "At the problem's own size it finds nothing."))
    return again


def _doubted(found: Sequence[SanitizerFinding], why: str) -> tuple[SanitizerFinding, ...]:
    return tuple(
        replace(
            item,
            verdict=None,
            finding=replace(item.finding, severity=Severity.FLAG, message=f"{item.finding.message} {why}"),
        )
        for item in found
    )


async def _look(tool_path: str, tool: Tool, order: SanitizerRequest, size: Workload) -> ToolResult:
    async with run_folder() as folder:
        report = folder / "report.txt"
        command = [tool_path, *sanitizer_checks.arguments(tool, report)]
        end = await run(command, _guest(order, size), folder, sanitizer_checks.ENVIRONMENT)
        text = report.read_text(encoding="utf-8", errors="replace") if report.is_file() else ""
    return _read(tool, order, read_report(text), end, _words(size))


def _guest(order: SanitizerRequest, size: Workload) -> ToolSubject:
    return ToolSubject(
        problem=order.problem,
        candidate=order.candidate,
        rewrites=size.rewrites,
        confine_files=order.confine_files,
        resident_bytes=order.resident_bytes,
        deadline_s=order.deadline_s,
        variables=order.variables,
    )


def _read(
    tool: Tool, order: SanitizerRequest, report: Report, end: guarded_program.ProgramEnd, words: str
) -> ToolResult:
    found = sanitizer_checks.judged(tool, report, order.candidate.source)
    if not found and (report.total is None or end.code != 0):
        return ToolResult(failed=_why(report, end, order))
    left_out = len(report.records) - len(sanitizer_checks.own(report))
    note = f"with {words}" + (f"; {left_out} reports in kernels of PyTorch's left out" if left_out else "")
    return ToolResult(found=found, note=note)


def _why(report: Report, end: guarded_program.ProgramEnd, order: SanitizerRequest) -> str:
    """Reason why a run gave no result, for a person."""
    last = next((line.strip() for line in reversed(end.log.splitlines()) if line.strip()), "it said nothing")
    reasons = {
        Ended.DEADLINE: f"not finished after {order.deadline_s:g} s",
        Ended.MEMORY: "it held more memory than is allowed",
        Ended.PROCESSES: f"it had more than {process_tree.PROCESSES} processes",
        Ended.LOST: "the process that watched it was killed",
    }
    if end.how in reasons:
        return reasons[end.how]
    complaints = [item for item in report.complaints if not item.startswith("Target application")]
    if report.total is None and complaints:
        return f"it gave up: {complaints[0][:200]}"
    return f"the program under it ended with status {end.code}: {last[:200]}"


def _words(size: Workload) -> str:
    return ", ".join(f"{item.spec.dtype} {item.spec.shape}" for item in size.graph.inputs) or "no inputs"


def _with(evaluation: Evaluation, tool: Tool, look: ToolResult) -> Evaluation:
    if look.failed:
        return _noted(evaluation, tool, CheckState.NOT_RUN, look.failed)
    if not look.found:
        return _noted(evaluation, tool, CheckState.RAN, look.note)
    first = look.found[0]
    noted = _noted(evaluation, tool, CheckState.FOUND, first.finding.message)
    findings = (*(item.finding for item in look.found), *evaluation.findings)
    exhibits = (*(item.exhibit for item in look.found), *evaluation.exhibits)
    if first.verdict is None:
        summary = noted.summary.replace("found nothing more.", "found nothing that decides; see its flags.")
        return replace(noted, findings=findings, exhibits=exhibits, summary=summary)
    return replace(
        noted,
        outcome=Judged(verdict=first.verdict),
        findings=findings,
        exhibits=exhibits,
        summary=first.finding.message,
    )


def _noted(evaluation: Evaluation, tool: Tool, state: CheckState, note: str) -> Evaluation:
    result = CheckResult(name=tool.check.name, tier=tool.check.tier, state=state, note=note)
    return replace(evaluation, checks=tuple(_replaced(evaluation.checks, result)))


def _replaced(checks: Sequence[CheckResult], result: CheckResult) -> Iterator[CheckResult]:
    """Results with the one of the same name replaced by `result`, or `result` added at the end."""
    yield from (result if item.name == result.name else item for item in checks)
    if all(item.name != result.name for item in checks):
        yield result
