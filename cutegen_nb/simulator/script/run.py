"""Run a program on the simulator in a subprocess, and collect its launches, findings and ending."""

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
from cutegen_nb.core.finding import Finding
from cutegen_nb.core.layout import LayoutRecord
from cutegen_nb.core.simulation import Ending, Launches, ProgramRun
from cutegen_nb.simulator.host.environment import prepare_environment
from cutegen_nb.simulator.ptx.faults import OutOfTime
from cutegen_nb.simulator.script.traceback import is_own
from cutegen_nb.simulator.state.architectures import DEFAULT_ARCHITECTURE

TIMED_OUT_STATUS = 124
"""Exit status of a program that was stopped at its deadline, as of timeout(1)."""
_LONGEST_LINE_BYTES = 64 << 20
"""Longest record in bytes."""
_GRACE_S = 3.0
"""Seconds after the deadline for the running launch to report its line, before the process is killed."""
_DRAIN_S = 2.0
"""Most seconds to read remaining records and output after the process has ended."""
_CHUNK = 1 << 16
"""Most bytes of output to read at once."""
_INCOMPLETE = "the launches before that are listed, counts of the last ones may be missing."
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[3])
_START = (
    f"import sys; sys.path.insert(0, {_PACKAGE_ROOT!r}); "
    "from cutegen_nb.simulator.script.child import main; main()"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Program to run, with its settings."""

    script: str
    """Path of the program's file as the user named it; the program finds it in ``sys.argv[0]``. With
    ``is_module`` the name of a module."""
    is_module: bool = False
    """True to find the program by the name of its module, as ``python -m`` does."""
    arguments: tuple[str, ...] = ()
    """Arguments of the program."""
    folder: str = ""
    """First entry of the program's ``sys.path``; empty for the folder of its file."""
    architecture: str = DEFAULT_ARCHITECTURE
    """Architecture that kernels are compiled for."""
    max_ctas: int | None = None
    """Most CTAs of a grid to run; None for all."""
    deadline_s: float | None = None
    """Seconds after which the program is ended; None for never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Standard streams of the program."""

    stdin: int | None = None
    """Standard input, as for ``subprocess``; None for that of this process."""
    stdout: int | None = None
    """Standard output, as for ``subprocess``; None for that of this process."""
    on_output: Callable[[bytes], None] | None = None
    """Receives standard output and error in chunks as they are written, in place of ``stdout``."""


def check(program: Script) -> None:
    """Check that the file can be read and compiles as Python; a module is looked for when the program begins.

    Raises:
        UsageError: it cannot be read or is no Python program.
        ConfigurationError: the architecture is not known.
    """
    prepare_environment(program.architecture)
    if program.is_module:
        if not all(part.isidentifier() for part in program.script.split(".")):
            message = f"{program.script} is not the name of a module; name a file without -m"
            raise UsageError(message)
        return
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
    program: Script, streams: Streams | None = None, *, environment: Mapping[str, str] = os.environ
) -> ProgramRun:
    """Run a program in a subprocess and wait for its end.

    The program has the user's own rights, environment and working folder; it is not sandboxed, and it gets no
    verdict. Cancelling ends the program with every process it started.

    Raises:
        UsageError: there is no Python program to run.
        ConfigurationError: the simulator cannot run here; the sentence says what to install.
        WorkerDied: the process ended before it started the program.
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
    program: Script, streams: Streams, environment: Mapping[str, str], writing: int
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
        env={**environment, **prepare_environment(program.architecture), **_kept(environment)},
    )


def _kept(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the DSL that a program keeps: that calls go through TVM-FFI."""
    return {name: value for name, value in environment.items() if name == "CUTE_DSL_ENABLE_TVM_FFI"}


def _absolute(path: str) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - links stay as given


async def _ended(process: asyncio.subprocess.Process, deadline_s: float | None) -> bool:
    """Wait for the process to end; return False if the deadline came first."""
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
"""Parts of PyTorch's error messages if a GPU is asked for where none is simulated."""
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
    """Contents of the records received so far."""

    is_ready: bool = False
    unusable: str = ""
    launches: dict[int, Launches] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    layouts: tuple[LayoutRecord, ...] = ()
    fault: tuple[Finding, bool] | None = None
    end: dict[str, Any] = field(default_factory=dict)

    def take(self, record: dict[str, Any]) -> None:
        """Store the contents of one record."""
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


def _result(program: Script, gathered: _Gathered, returned: int, *, in_time: bool) -> ProgramRun:
    if gathered.unusable:
        raise ConfigurationError(gathered.unusable)
    if not gathered.is_ready and in_time:
        raise WorkerDied(
            f"the process for {program.script} ended before it ran the program ({_status_words(returned)}); "
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
    """Sentence on the part of the program that ran outside the simulator or this report; empty if none."""
    fault, is_judged = gathered.fault or (None, True)
    if fault is not None and not is_judged:
        return fault.message
    if gathered.end.get("elsewhere"):
        return _LAUNCHED_ELSEWHERE
    return _NO_GPU_ELSEWHERE if any(words in sentence for words in _NO_GPU) else ""


def _ending(program: Script, gathered: _Gathered, returned: int, *, late: bool) -> tuple[Ending, int, str]:
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
    """Text of each of the program's own files that counts or findings have lines of, by path."""
    paths = {line.file for item in launches for line in item.profile.lines} | {item.file for item in findings}
    found: dict[str, str] = {}
    for path in sorted(path for path in paths if path and is_own(path)):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            found[path] = Path(path).read_text(encoding="utf-8")
    return found


def end_family(ancestor: int) -> None:
    """Kill a process and all its descendants, parents before children, so that none is left to start more."""
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
