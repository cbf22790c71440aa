"""Guarded run of a program around a candidate, such as one of NVIDIA's tools.

A small guard process stands between the caller and the program. It adopts every process that the program
starts, limits time, memory and number of processes, and keeps the tail of the output. It ends all of them at
the end or on cancellation. The caller's own process can adopt no orphans, and asyncio's child processes may
not outlive its event loops.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

from cutegen_nb.evaluator.process import confinement, process_tree

_LOG_BYTES = 16 << 10
_TICK_S = 0.1
"""Seconds between two checks of deadline, memory and number of processes."""
_GRACE_S = 20.0
"""Seconds after the deadline in which the guard ends all processes and reports."""


class Ended(StrEnum):
    """Reason for a program's end."""

    ITSELF = "itself"
    DEADLINE = "deadline"
    MEMORY = "memory"
    PROCESSES = "processes"
    CANCELLED = "cancelled"
    LOST = "lost"
    """The guard process was killed or did not report in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedProgram:
    """Program to run, and its limits."""

    command: Sequence[str]
    """Path of the executable and its arguments."""
    folder: str
    """Working directory."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Complete environment; no variable is inherited."""
    deadline_s: float
    """Limit on wall time in seconds."""
    alone: bool = False
    """True if the program gets an empty network namespace, where one may be created."""
    resident_bytes: int | None = None
    """Limit on the resident memory in bytes of the program and its descendants together; None for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramEnd:
    """Outcome of a guarded program."""

    how: Ended
    """Reason for its end."""
    code: int | None = None
    """Exit status, or minus the signal that ended it; None when the guard ended it or was lost."""
    log: str = ""
    """Tail of stdout and stderr together."""


async def run(program: GuardedProgram) -> ProgramEnd:
    """Run a program to its end; when the caller is cancelled, end the program and all it started.

    A program that cannot be started ends with status 127. Raises OSError when no guard can be started.
    """
    guard = _guard()
    try:
        return await asyncio.to_thread(_converse, guard, program)
    finally:
        # End of file on its stdin tells the guard to cancel.
        assert guard.stdin is not None
        with contextlib.suppress(OSError):
            guard.stdin.close()


def _guard() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        start_new_session=True,
    )


def _converse(guard: subprocess.Popen[bytes], program: GuardedProgram) -> ProgramEnd:
    assert guard.stdin is not None
    assert guard.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        guard.stdin.write(json.dumps(asdict(program)).encode() + b"\n")
        guard.stdin.flush()
    ready, _, _ = select.select([guard.stdout], [], [], program.deadline_s + _GRACE_S)
    line = guard.stdout.readline() if ready else b""
    if not line:
        process_tree.kill_descendants(guard.pid)
        guard.kill()
    guard.wait()
    guard.stdout.close()
    if not line:
        return ProgramEnd(how=Ended.LOST)
    told = json.loads(line)
    return ProgramEnd(how=Ended(told["how"]), code=told["code"], log=told["log"])


def main() -> int:
    """Guard one program, given as JSON on the first line of stdin; report its end as JSON on stdout."""
    program = GuardedProgram(**json.loads(sys.stdin.buffer.readline()))
    process_tree.adopt_orphans()
    if program.alone:
        confinement.leave_network()
    try:
        child = subprocess.Popen(
            program.command,
            cwd=program.folder,
            env=dict(program.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: process_tree.limit_worker(None),  # noqa: PLW1509 - this process has one thread
        )
    except OSError as error:
        _tell(ProgramEnd(how=Ended.ITSELF, code=127, log=str(error)))
        return 0
    tail = bytearray()
    how = _watch(child, program, tail)
    code = child.poll() if how is Ended.ITSELF else None
    process_tree.kill_descendants(os.getpid())
    _tell(ProgramEnd(how=how, code=code, log=tail.decode("utf-8", "replace")))
    return 0


def _tell(end: ProgramEnd) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(asdict(end)) + "\n")
        sys.stdout.flush()


def _watch(child: subprocess.Popen[bytes], program: GuardedProgram, tail: bytearray) -> Ended:
    """Wait until the child ends or exceeds a limit, or until stdin closes, which means cancellation."""
    assert child.stdout is not None
    output = child.stdout.fileno()
    os.set_blocking(output, False)
    deadline = time.monotonic() + program.deadline_s
    open_output = True
    while child.poll() is None:
        sources = [sys.stdin.fileno()] + ([output] if open_output else [])
        ready, _, _ = select.select(sources, [], [], _TICK_S)
        if sys.stdin.fileno() in ready:
            return Ended.CANCELLED
        if output in ready:
            open_output = _read(output, tail)
        if time.monotonic() > deadline:
            return Ended.DEADLINE
        excess = _excess(program)
        if excess is not None:
            return excess
    _read(output, tail)
    return Ended.ITSELF


def _read(output: int, tail: bytearray) -> bool:
    """Append all available output to `tail`. Return False at the end of the output."""
    with contextlib.suppress(BlockingIOError):
        while chunk := os.read(output, 1 << 16):
            tail += chunk
            del tail[:-_LOG_BYTES]
        return False
    return True


def _excess(program: GuardedProgram) -> Ended | None:
    family = process_tree.descendants(os.getpid())
    if len(family) > process_tree.PROCESSES:
        return Ended.PROCESSES
    held = sum(process_tree.resident_bytes(pid) for pid in family)
    return Ended.MEMORY if program.resident_bytes is not None and held > program.resident_bytes else None


if __name__ == "__main__":
    sys.exit(main())
