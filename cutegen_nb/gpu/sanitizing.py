"""A candidate that passed, once under each of compute-sanitizer's tools, each in a process of its own.

The tools slow a kernel down ten- to a thousandfold, so that they look at the size that the simulator would
take. A kernel may be right at the problem's own size only: what a tool finds at the smaller one counts when
it finds it at the problem's own as well, and is a flag otherwise.

Where files cannot be confined (CUDA finds no device then), a candidate could write over its own report; it
has passed everything else by then, and `confinement` in the report says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import CheckResult, CheckState, Evaluation, Judged, Severity
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Problem, Workload
from cutegen_nb.gpu import program, sandbox
from cutegen_nb.gpu.checks import sanitizer
from cutegen_nb.gpu.checks.sanitizer import Found, Tool
from cutegen_nb.gpu.checks.sanitizer_report import Report, read_report
from cutegen_nb.gpu.program import Ended
from cutegen_nb.gpu.tool_run import Guest, locate, run, run_folder

DEADLINE_S = 90.0
"""For one tool at one size: importing PyTorch and the DSL and compiling take 10 s under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be looked at."""

    problem: Problem
    """The problem."""
    candidate: Candidate
    """Its candidate, which passed."""
    sizes: tuple[Workload, ...]
    """The smallest first, the problem's own last."""
    confine_files: bool
    """Whether CUDA finds the device where files are confined."""
    resident_bytes: int | None = None
    """Memory that the processes of one tool may hold."""
    deadline_s: float = DEADLINE_S
    """For one tool at one size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One tool at one size."""

    found: tuple[Found, ...] = ()
    """What it says of the candidate."""
    note: str = ""
    """What it looked at."""
    failed: str = ""
    """Why it says nothing; empty when it came to its end."""


async def through_tools(passed: Evaluation, order: Order, progress: Progress) -> Evaluation:
    """`passed` with the results of every tool; where one of them decides, those after it do not run."""
    tool_path = locate(sanitizer.NAME)
    evaluation = passed
    for tool in sanitizer.TOOLS:
        if tool_path is None:
            evaluation = _noted(evaluation, tool, CheckState.NOT_RUN, sanitizer.ABSENT)
            continue
        progress(f"running {sanitizer.NAME} {tool.name}")
        evaluation = _with(evaluation, tool, await looked(tool_path, tool, order))
        if not evaluation.passed:
            break
    return evaluation


async def looked(tool_path: str, tool: Tool, order: Order) -> Look:
    """At the smallest size at which the candidate runs; at the problem's own too where something decides."""
    look = Look(failed="no size was tried")
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


def _doubted(found: Sequence[Found], why: str) -> tuple[Found, ...]:
    return tuple(
        replace(
            item,
            verdict=None,
            finding=replace(item.finding, severity=Severity.FLAG, message=f"{item.finding.message} {why}"),
        )
        for item in found
    )


async def _look(tool_path: str, tool: Tool, order: Order, size: Workload) -> Look:
    async with run_folder() as folder:
        report = folder / "report.txt"
        command = [tool_path, *sanitizer.arguments(tool, report)]
        end = await run(command, _guest(order, size), folder, sanitizer.ENVIRONMENT)
        text = report.read_text(encoding="utf-8", errors="replace") if report.is_file() else ""
    return _read(tool, order, read_report(text), end, _words(size))


def _guest(order: Order, size: Workload) -> Guest:
    return Guest(
        problem=order.problem,
        candidate=order.candidate,
        rewrites=size.rewrites,
        confine_files=order.confine_files,
        resident_bytes=order.resident_bytes,
        deadline_s=order.deadline_s,
    )


def _read(tool: Tool, order: Order, report: Report, end: program.End, words: str) -> Look:
    found = sanitizer.judged(tool, report, order.candidate.source)
    if not found and (report.total is None or end.code != 0):
        return Look(failed=_why(report, end, order))
    left_out = len(report.records) - len(sanitizer.own(report))
    note = f"with {words}" + (f"; {left_out} reports in kernels of PyTorch's left out" if left_out else "")
    return Look(found=found, note=note)


def _why(report: Report, end: program.End, order: Order) -> str:
    """Why a run says nothing of the candidate."""
    last = next((line.strip() for line in reversed(end.log.splitlines()) if line.strip()), "it said nothing")
    reasons = {
        Ended.DEADLINE: f"not finished after {order.deadline_s:g} s",
        Ended.MEMORY: "it held more memory than is allowed",
        Ended.PROCESSES: f"it had more than {sandbox.PROCESSES} processes",
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


def _with(evaluation: Evaluation, tool: Tool, look: Look) -> Evaluation:
    if look.failed:
        return _noted(evaluation, tool, CheckState.NOT_RUN, look.failed)
    if not look.found:
        return _noted(evaluation, tool, CheckState.RAN, look.note)
    first = look.found[0]
    noted = _noted(evaluation, tool, CheckState.FOUND, first.finding.message)
    noted = replace(
        noted,
        findings=(*(item.finding for item in look.found), *evaluation.findings),
        exhibits=(*(item.exhibit for item in look.found), *evaluation.exhibits),
    )
    if first.verdict is None:
        summary = noted.summary.replace("found nothing more.", "found nothing that decides; see its flags.")
        return replace(noted, summary=summary)
    return replace(noted, outcome=Judged(verdict=first.verdict), summary=first.finding.message)


def _noted(evaluation: Evaluation, tool: Tool, state: CheckState, note: str) -> Evaluation:
    result = CheckResult(name=tool.check.name, tier=tool.check.tier, state=state, note=note)
    return replace(evaluation, checks=tuple(_replaced(evaluation.checks, result)))


def _replaced(checks: Sequence[CheckResult], result: CheckResult) -> Iterator[CheckResult]:
    """The results with one of them in its own place."""
    yield from (result if item.name == result.name else item for item in checks)
    if all(item.name != result.name for item in checks):
        yield result
