"""Starts the process that runs a program on the simulator, and gathers what comes of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cutegen_nb.core.codec import decode
from cutegen_nb.core.errors import ConfigurationError, UsageError, WorkerDied
from cutegen_nb.core.evaluation import Finding
from cutegen_nb.core.layout import LayoutRecord
from cutegen_nb.core.simulation import Ending, Launches, ProgramRun
from cutegen_nb.simulator.architectures import DEFAULT_ARCHITECTURE
from cutegen_nb.simulator.bridge_environment import prepare_environment
from cutegen_nb.simulator.faults import OutOfTime
from cutegen_nb.simulator.script_error import is_own

TIMED_OUT_STATUS = 124
"""As timeout(1) says it."""
_LONGEST_LINE_BYTES = 64 << 20
_GRACE_S = 3.0
"""For the launch that meets the deadline to say on which line it was."""
_DRAIN_S = 2.0
_CHUNK = 1 << 16
_INCOMPLETE = "the launches before that are listed, counts of the last ones may be missing."
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
_START = (
    f"import sys; sys.path.insert(0, {_PACKAGE_ROOT!r}); from cutegen_nb.simulator.script import main; main()"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to run, and how."""

    script: str
    """Path of its file, as named; the program finds this in ``sys.argv[0]``."""
    arguments: tuple[str, ...] = ()
    """Its arguments."""
    folder: str = ""
    """What comes first on its module path; empty for the folder of its file."""
    architecture: str = DEFAULT_ARCHITECTURE
    """What its kernels are compiled for."""
    max_ctas: int | None = None
    """CTAs of a larger grid that run; None for all."""
    deadline_s: float | None = None
    """Seconds after which it is ended; None for never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Where the program's input and output lead."""

    stdin: int | None = None
    """As for ``subprocess``; None for that of this process."""
    stdout: int | None = None
    """As for ``subprocess``; None for that of this process."""
    on_output: Callable[[bytes], None] | None = None
    """Takes both outputs in place of ``stdout``, as they come."""


def check(program: Program) -> None:
    """See that there is a Python program to run.

    Raises:
        UsageError: there is none.
        ConfigurationError: the architecture is not known.
    """
    prepare_environment(program.architecture)
    path = Path(program.script)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the program {program.script}: {error.strerror}") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        where = f" at line {error.lineno}" if error.lineno else ""
        raise UsageError(f"{program.script} is not a Python program: {error.msg}{where}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{program.script} is not a Python program: {error}") from error


async def run_program(
    program: Program, streams: Streams | None = None, *, environment: Mapping[str, str] = os.environ
) -> ProgramRun:
    """Run a program in a process of its own and wait for its end.

    The program has the person's own rights, environment and working folder: it is theirs, and nothing
    of it is judged. Cancelling ends it with every process it started.

    Raises:
        UsageError: there is no Python program to run.
        ConfigurationError: the simulator cannot run here; the sentence says what to install.
        WorkerDied: the process ended before it came to the program.
    """
    check(program)
    streams = streams or Streams()
    reading, writing = os.pipe()
    try:
        process = await _started(program, streams, environment, writing)
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    gathered = _Gathered()
    records = asyncio.create_task(_gather(reading, gathered))
    output = asyncio.create_task(_pass_on(process.stdout, streams.on_output))
    try:
        in_time = await _ended(process, program.deadline_s)
        await asyncio.wait((records, output), timeout=_DRAIN_S)
    finally:
        if process.returncode is None:
            end_family(process.pid)
        records.cancel()
        output.cancel()
        await process.wait()
    return _result(program, gathered, process.returncode or 0, in_time=in_time)


async def _started(
    program: Program, streams: Streams, environment: Mapping[str, str], writing: int
) -> asyncio.subprocess.Process:
    order = {**asdict(program), "path": _absolute(program.script), "record_fd": writing}
    captured = asyncio.subprocess.PIPE if streams.on_output else None
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-uP",
        "-c",
        _START,
        json.dumps(order),
        stdin=streams.stdin,
        stdout=captured or streams.stdout,
        stderr=asyncio.subprocess.STDOUT if captured else None,
        pass_fds=(writing,),
        env={**environment, **prepare_environment(program.architecture)},
    )


def _absolute(path: str) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - links stay as given


async def _ended(process: asyncio.subprocess.Process, deadline_s: float | None) -> bool:
    """Wait for the end; False when the deadline came first."""
    try:
        await asyncio.wait_for(process.wait(), None if deadline_s is None else deadline_s + _GRACE_S)
    except TimeoutError:
        return False
    return True


async def _pass_on(stream: asyncio.StreamReader | None, take: Callable[[bytes], None] | None) -> None:
    if stream is None or take is None:
        return
    while chunk := await stream.read(_CHUNK):
        take(chunk)


_NO_GPU = ("Torch not compiled with CUDA enabled", "with arguments from the 'CUDA' backend")
"""What PyTorch for CPUs says where no GPU is simulated."""
_NO_GPU_ELSEWHERE = (
    "A GPU is simulated in the main thread of the program's own process only; a process or thread that it "
    "started asked for one. Launch from the main thread, or give the program one worker or none."
)
_LAUNCHED_ELSEWHERE = (
    "Processes that the program forked launched kernels: they ran on the simulator, but what its checks "
    "found and its counts are not in this report. Launch from the program's own process, with no workers."
)


@dataclass(slots=True)
class _Gathered:
    """What the records said so far."""

    is_ready: bool = False
    unusable: str = ""
    launches: dict[int, Launches] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    layouts: tuple[LayoutRecord, ...] = ()
    fault: tuple[Finding, bool] | None = None
    end: dict[str, Any] = field(default_factory=dict)

    def take(self, record: dict[str, Any]) -> None:
        """Take one record."""
        match record["kind"]:
            case "ready":
                self.is_ready = True
            case "unusable":
                self.unusable = record["message"]
            case "launches":
                self.launches[record["index"]] = decode(Launches, record["launches"])
            case "findings":
                self.findings = tuple(decode(Finding, item) for item in record["findings"])
            case "layouts":
                self.layouts = decode(tuple[LayoutRecord, ...], record["layouts"])
            case "fault":
                self.fault = (decode(Finding, record["finding"]), record["judged"])
            case "end":
                self.end = record


async def _gather(reading: int, gathered: _Gathered) -> None:
    reader = asyncio.StreamReader(limit=_LONGEST_LINE_BYTES)
    pipe = os.fdopen(reading, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    try:
        while line := await reader.readline():
            gathered.take(json.loads(line))
    finally:
        transport.close()


def _result(program: Program, gathered: _Gathered, returned: int, *, in_time: bool) -> ProgramRun:
    if gathered.unusable:
        raise ConfigurationError(gathered.unusable)
    if not gathered.is_ready and in_time:
        raise WorkerDied(
            f"the process for {program.script} ended before it began ({_status_words(returned)}); "
            "its output above says why"
        )
    fault, is_judged = gathered.fault or (None, True)
    findings = gathered.findings
    if fault is not None and is_judged and fault.kind != OutOfTime.kind and fault not in findings:
        findings = (*findings, fault)
    late = not in_time or (fault is not None and fault.kind == OutOfTime.kind)
    ending, status, sentence = _ending(program, gathered, returned, late=late)
    launches = tuple(gathered.launches[index] for index in sorted(gathered.launches))
    return ProgramRun(
        script=program.script,
        arguments=program.arguments,
        architecture=program.architecture,
        ending=ending,
        exit_status=status,
        sentence=sentence,
        launches=launches,
        findings=findings,
        not_simulated=_not_simulated(gathered, sentence),
        sources=_sources(launches, findings),
        layouts=gathered.layouts,
    )


def _not_simulated(gathered: _Gathered, sentence: str) -> str:
    """What of the program ran outside the simulator, or outside this report."""
    fault, is_judged = gathered.fault or (None, True)
    if fault is not None and not is_judged:
        return fault.message
    if gathered.end.get("elsewhere"):
        return _LAUNCHED_ELSEWHERE
    return _NO_GPU_ELSEWHERE if any(words in sentence for words in _NO_GPU) else ""


def _ending(program: Program, gathered: _Gathered, returned: int, *, late: bool) -> tuple[Ending, int, str]:
    if late:
        place = f" {gathered.fault[0].message}" if gathered.fault else ""
        return (
            Ending.TIMED_OUT,
            TIMED_OUT_STATUS,
            f"The program was still running after {program.deadline_s:g} s and was ended.{place}",
        )
    if gathered.end:
        end = gathered.end
        return Ending(end["ending"]), end["status"], end["sentence"]
    if returned < 0:
        why = ", perhaps because the machine ran out of memory" if returned == -signal.SIGKILL else ""
        return (
            Ending.KILLED,
            128 - returned,
            f"The program's process was ended by {_status_words(returned)}{why}; {_INCOMPLETE}",
        )
    return (
        Ending.EXITED,
        returned,
        f"The program ended its process past Python's own end ({_status_words(returned)}); {_INCOMPLETE}",
    )


def _status_words(returned: int) -> str:
    if returned >= 0:
        return f"status {returned}"
    try:
        return f"signal {-returned}, {signal.Signals(-returned).name}"
    except ValueError:
        return f"signal {-returned}"


def _sources(launches: tuple[Launches, ...], findings: tuple[Finding, ...]) -> dict[str, str]:
    """Text of the program's own files that something is known of."""
    paths = {line.file for item in launches for line in item.profile.lines} | {item.file for item in findings}
    found: dict[str, str] = {}
    for path in sorted(path for path in paths if path and is_own(path)):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            found[path] = Path(path).read_text(encoding="utf-8")
    return found


def end_family(ancestor: int) -> None:
    """End a process and what it started, children first seen last, so that none is left to start more."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):
                words = (
                    (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                )
                parents[int(entry.name)] = int(words[1])
    family, edge = [], {ancestor}
    while edge:
        family += sorted(edge)
        edge = {pid for pid, parent in parents.items() if parent in edge}
    for pid in family:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
