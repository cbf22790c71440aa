"""Verdicts and errors drawn from the end of a worker: candidate's, problem's or this package's fault."""

from __future__ import annotations

import re
import signal
from typing import Any

from cutegen_nb.core import errors
from cutegen_nb.core.candidate import FILE_NAME
from cutegen_nb.core.errors import EvaluatorError, ProblemError, WorkerDied
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.finding import Exhibit, Finding, Severity
from cutegen_nb.evaluator.process import process_tree
from cutegen_nb.evaluator.process.supervisor import WorkerEnd
from cutegen_nb.evaluator.process.transcript import RecordHandler, escape_for_print
from cutegen_nb.evaluator.process.worker_handle import ProcessLimits, WorkerRun

_FRAME = re.compile(rf'File "[^"]*/{re.escape(FILE_NAME)}", line (\d+)')
_MEMORY = re.compile(r"bad_alloc|MemoryError|out of memory|[Cc]an(?:'t|not) allocate memory")
STARTING = "starting"
"""Stage of a worker that has not named one yet."""
_OURS: dict[str, type[errors.CutegenError]] = {
    kind.__name__: kind
    for kind in (
        errors.ConfigurationError,
        errors.DeviceUnavailable,
        errors.ProblemError,
        errors.UsageError,
        errors.WorkerDied,
    )
}
"""Errors that a worker may report by name; any other name is raised as EvaluatorError."""
_LONGEST_MESSAGE = 4000
_LAST_LINES = 3
_LAST_CHARACTERS = 600
LOG_CHARACTERS = 8000
"""Length in characters of the tail of the candidate's output that is kept with the evaluation."""


def verdict_without_result(run: WorkerRun, limits: ProcessLimits, stage: str, device: str) -> Evaluation:
    """Verdict for a worker that sent no complete record; `stage` is the last stage that it named."""
    log = str(run.end["log"]) if run.end else ""
    verdict, kind, message = _cause(run, limits, stage, log)
    finding = Finding(kind=kind, message=message, line=_line(log))
    where = f" (line {finding.line})" if finding.line else ""
    return Evaluation(
        outcome=Judged(verdict=verdict),
        summary=message.removesuffix(".") + where + ".",
        device=device,
        findings=(finding,),
        exhibits=_exhibits(run, verdict, finding),
        log=log[-LOG_CHARACTERS:],
    )


def _exhibits(run: WorkerRun, verdict: Verdict, finding: Finding) -> tuple[Exhibit, ...]:
    """Evidence for the verdict CHEATED: the candidate's record in the result channel."""
    if verdict is not Verdict.CHEATED:
        return ()
    lines = (finding.line, finding.line) if finding.line else None
    trace = (f"in the result channel: {escape_for_print(run.malformed[:400])}",)
    return (Exhibit(kind=finding.kind, statement=finding.message, trace=trace, lines=lines),)


def _cause(run: WorkerRun, limits: ProcessLimits, stage: str, log: str) -> tuple[Verdict, str, str]:
    if run.end is None:
        return (
            Verdict.CRASHED,
            "supervisor-killed",
            f"The process that watches the candidate was killed or stopped while {stage}.",
        )
    how, code = WorkerEnd(run.end["how"]), run.end["code"]
    if how is WorkerEnd.DEADLINE:
        message = f"Not finished after {limits.deadline_s:g} s; it was still {stage}."
        if stage.endswith("compiling"):
            message += (
                " Python's own loops run while a kernel is compiled, and one over a tensor (`sum(x)`, "
                "`for v in x`) has no end."
            )
        return Verdict.TIMED_OUT, "timed-out", message
    if how is WorkerEnd.PROCESSES:
        message = (
            f"The candidate had {run.end['processes']} processes while {stage}, and "
            f"{process_tree.PROCESSES} are allowed; all were ended. A kernel needs none but its own."
        )
        return Verdict.CRASHED, "too-many-processes", message
    if how is WorkerEnd.MEMORY:
        limit = limits.resident_bytes
        allowed = f"; the limit is {limit / 2**30:.1f} GiB" if limit else ", more than is allowed"
        message = (
            f"The candidate held {run.end['peak_bytes'] / 2**30:.1f} GiB of memory while {stage}{allowed}."
        )
        return Verdict.OUT_OF_MEMORY, "out-of-memory", message
    if _MEMORY.search(log[-2000:]) and how is WorkerEnd.SIGNALLED:
        return Verdict.OUT_OF_MEMORY, "out-of-memory", f"Memory ran out while {stage}."
    if how is WorkerEnd.SIGNALLED:
        name, hint = _signal(code)
        return Verdict.CRASHED, "signal", f"While {stage} the candidate was ended by {name}{hint}."
    if run.malformed:
        message = (
            "The candidate tampered with the channel that carries its result: "
            f"{escape_for_print(run.malformed[:200])}."
        )
        return Verdict.CHEATED, "forged-result", message
    return Verdict.EXITED, "exited", f"The process ended with status {code} and no result while {stage}."


def _signal(code: int) -> tuple[str, str]:
    """Name of the signal that ended a process, and a hint at the cause."""
    name = signal.Signals(-code).name
    return name, ", which the system sends when memory runs out" if name == "SIGKILL" else ""


def never_started_error(end: dict[str, Any] | None) -> WorkerDied:
    """Error for a worker that ended before it touched its candidate.

    `end` is the report of its supervisor; None where none came.
    """
    how, log = "no report says why", ""
    if end is not None:
        how, log = f"status {end['code']}", str(end["log"])
        if end["how"] == WorkerEnd.SIGNALLED:
            name, hint = _signal(end["code"])
            how = f"{name}{hint}"
    last = [line.strip() for line in log.splitlines() if line.strip()][-_LAST_LINES:]
    said = f" It printed at the end: {' | '.join(last)[-_LAST_CHARACTERS:]}" if last else ""
    return WorkerDied(f"The worker process ended before it ran the candidate ({how}); evaluate again.{said}")


def _line(log: str) -> int:
    """Innermost line of the candidate in faulthandler's traceback; 0 when there is none."""
    start = max(log.rfind("Current thread"), log.rfind("most recent call first"), 0)
    found = _FRAME.search(log, start)
    return int(found[1]) if found else 0


def leftovers(run: WorkerRun) -> tuple[Finding, ...]:
    """Flag processes that the candidate started and that outlived it."""
    left = int(run.end["left"]) if run.end else 0
    if left == 0:
        return ()
    message = (
        f"{left} process(es) that the candidate had started were still alive at its end and were killed."
    )
    return (Finding(kind="left-processes", message=message, severity=Severity.FLAG),)


def raise_reported_error(heard: RecordHandler, *, believed: bool = True) -> None:
    """Raise the error that the worker reported, if its last record is an error.

    With `believed` false, the worker does not choose the type: every reported error is an EvaluatorError.
    """
    record = heard.result
    if record is None:
        return
    if record.get("kind") == "error":
        named = str(record.get("error")) if believed else ""
        raise _OURS.get(named, EvaluatorError)(str(record.get("message"))[:_LONGEST_MESSAGE])
    if record.get("kind") == "fault":
        trace = str(record.get("trace", ""))[-_LONGEST_MESSAGE:]
        raise EvaluatorError(
            f"The worker failed while {heard.stage}: {str(record.get('message'))[:_LONGEST_MESSAGE]}. "
            "This is a fault of "
            f"cutegen_nb; please report it with this trace:\n    {escape_for_print(trace)}"
        )


def unusable_problem_error(run: WorkerRun, limits: ProcessLimits, stage: str) -> ProblemError:
    """Error for a problem whose own code ended the worker that traced it."""
    evaluation = verdict_without_result(run, limits, stage or STARTING, "")
    return ProblemError(
        f"The problem cannot be traced. {evaluation.summary} "
        "Look at what the file does when it is imported and in get_inputs, and run again."
    )
