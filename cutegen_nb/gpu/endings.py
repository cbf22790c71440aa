"""What the end of a worker says: of its candidate where no result came, of the problem, of us."""

from __future__ import annotations

import re
import signal
from typing import Any

from cutegen_nb.core import errors
from cutegen_nb.core.candidate import FILE_NAME
from cutegen_nb.core.errors import EvaluatorError, ProblemError, WorkerDied
from cutegen_nb.core.evaluation import Evaluation, Exhibit, Finding, Judged, Severity, Verdict
from cutegen_nb.gpu import sandbox
from cutegen_nb.gpu.heard import Heard
from cutegen_nb.gpu.waiting import Limits, Run
from cutegen_nb.gpu.warden import End

_FRAME = re.compile(rf'File "[^"]*/{re.escape(FILE_NAME)}", line (\d+)')
_MEMORY = re.compile(r"bad_alloc|MemoryError|out of memory|[Cc]an(?:'t|not) allocate memory")
STARTING = "starting"
"""What a worker that has said nothing is doing."""
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
"""What a worker may name as what it could not do; under any other name it is an EvaluatorError."""
_LONGEST_MESSAGE = 4000
_LAST_LINES = 3
_LAST_CHARACTERS = 600
LOG_CHARACTERS = 8000
"""Tail of the candidate's output that is kept with the evaluation."""


def without_result(run: Run, limits: Limits, stage: str, device: str) -> Evaluation:
    """The verdict for a worker that sent no complete record; `stage` is what it last said it was doing."""
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


def _exhibits(run: Run, verdict: Verdict, finding: Finding) -> tuple[Exhibit, ...]:
    """What an accusation rests on: the record that came where none of the candidate's may."""
    if verdict is not Verdict.CHEATED:
        return ()
    lines = (finding.line, finding.line) if finding.line else None
    trace = (f"in the result channel: {run.malformed[:400]}",)
    return (Exhibit(kind=finding.kind, statement=finding.message, trace=trace, lines=lines),)


def _cause(run: Run, limits: Limits, stage: str, log: str) -> tuple[Verdict, str, str]:
    if run.end is None:
        return (
            Verdict.CRASHED,
            "warden-killed",
            f"The process that watches the candidate was killed or stopped while {stage}.",
        )
    how, code = End(run.end["how"]), run.end["code"]
    if how is End.DEADLINE:
        message = f"Not finished after {limits.deadline_s:g} s; it was still {stage}."
        return Verdict.TIMED_OUT, "timed-out", message
    if how is End.PROCESSES:
        message = (
            f"It had {run.end['processes']} processes while {stage}, and {sandbox.PROCESSES} are allowed; "
            "all were ended. A kernel needs none but its own."
        )
        return Verdict.CRASHED, "too-many-processes", message
    if how is End.MEMORY:
        message = (
            f"It held {run.end['peak_bytes'] / 2**30:.1f} GiB of memory while {stage}, more than is allowed."
        )
        return Verdict.OUT_OF_MEMORY, "out-of-memory", message
    if _MEMORY.search(log[-2000:]) and how is End.SIGNALLED:
        return Verdict.OUT_OF_MEMORY, "out-of-memory", f"Memory ran out while {stage}."
    if how is End.SIGNALLED:
        name, hint = _signal(code)
        return Verdict.CRASHED, "signal", f"It was ended by {name} while {stage}{hint}."
    if run.malformed:
        message = f"It wrote into the result channel: {run.malformed[:200]}."
        return Verdict.CHEATED, "forged-result", message
    return Verdict.EXITED, "exited", f"The process ended with status {code} and no result while {stage}."


def _signal(code: int) -> tuple[str, str]:
    """Name of the signal that ended a process, and what it hints at."""
    name = signal.Signals(-code).name
    return name, "; the system kills so when memory runs out" if name == "SIGKILL" else ""


def before_it_began(end: dict[str, Any] | None) -> WorkerDied:
    """What is raised for a worker that ended before it touched its candidate.

    `end` is its warden's report, None where none came.
    """
    how, log = "and nothing tells how", ""
    if end is not None:
        how, log = f"with status {end['code']}", str(end["log"])
        if end["how"] == End.SIGNALLED:
            name, hint = _signal(end["code"])
            how = f"by {name}{hint}"
    last = [line.strip() for line in log.splitlines() if line.strip()][-_LAST_LINES:]
    said = f" It printed at the end: {' | '.join(last)[-_LAST_CHARACTERS:]}" if last else ""
    return WorkerDied(f"The worker ended before it began, {how}; evaluate again.{said}")


def _line(log: str) -> int:
    """Innermost line of the candidate in what faulthandler printed, 0 when it printed none."""
    start = max(log.rfind("Current thread"), log.rfind("most recent call first"), 0)
    found = _FRAME.search(log, start)
    return int(found[1]) if found else 0


def leftovers(run: Run) -> tuple[Finding, ...]:
    """A flag for processes of the candidate that outlived it."""
    left = int(run.end["left"]) if run.end else 0
    if left == 0:
        return ()
    message = (
        f"{left} process(es) that the candidate had started were still alive at its end and were killed."
    )
    return (Finding(kind="left-processes", message=message, severity=Severity.FLAG),)


def raise_ours(heard: Heard, *, believed: bool = True) -> None:
    """Raise what the worker could not do, when that is what it reported.

    Where it is not `believed` it has no say in what kind of error that is: whatever it names is ours.
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
            f"cutegen_nb; please report it with this trace:\n{trace}"
        )


def unusable(run: Run, limits: Limits, stage: str) -> ProblemError:
    """A problem whose own code ended the worker that traced it."""
    evaluation = without_result(run, limits, stage or STARTING, "")
    return ProblemError(
        f"The problem cannot be traced. {evaluation.summary} "
        "Look at what the file does when it is imported and in get_inputs, and run again."
    )
