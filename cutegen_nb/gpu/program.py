"""A program around a candidate (one of NVIDIA's tools) as a guarded child process.

A small process of ours stands between: it adopts whatever the program starts, bounds it in time, memory and
processes, keeps the tail of its output, and ends all of it at the end or when nobody wants the result any
more. The caller's own process can adopt no orphans, and runs event loops that asyncio's children may not
outlive.
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

from cutegen_nb.gpu import confinement, sandbox

_LOG_BYTES = 16 << 10
_TICK_S = 0.1
_GRACE_S = 20.0
"""After the deadline, for the family to be ended and the report to come."""


class Ended(StrEnum):
    """How a program came to its end."""

    ITSELF = "itself"
    DEADLINE = "deadline"
    MEMORY = "memory"
    PROCESSES = "processes"
    CANCELLED = "cancelled"
    LOST = "lost"
    """The process that watched it was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run, and what it may use."""

    command: Sequence[str]
    """Path of the executable and its arguments."""
    folder: str
    """Where it runs."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """All its variables."""
    deadline_s: float
    """Wall time."""
    alone: bool = False
    """Whether it gets a network namespace with nothing in it, where one may be made."""
    resident_bytes: int | None = None
    """Resident memory of it and its descendants together; None for no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What became of a program."""

    how: Ended
    """How it came to its end."""
    code: int | None = None
    """Its status, minus the signal where one ended it; None when it was ended by us."""
    log: str = ""
    """Tail of its output, both streams."""


async def run(program: Program) -> End:
    """Run a program to its end; when the caller is cancelled, it and all it started are ended.

    Raises OSError when no process can be started.
    """
    guard = _guard()
    try:
        return await asyncio.to_thread(_converse, guard, program)
    finally:
        # The end of its input tells the guard that nobody waits.
        assert guard.stdin is not None
        with contextlib.suppress(OSError):
            guard.stdin.close()


def _guard() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)},
        start_new_session=True,
    )


def _converse(guard: subprocess.Popen[bytes], program: Program) -> End:
    assert guard.stdin is not None
    assert guard.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        guard.stdin.write(json.dumps(asdict(program)).encode() + b"\n")
        guard.stdin.flush()
    ready, _, _ = select.select([guard.stdout], [], [], program.deadline_s + _GRACE_S)
    line = guard.stdout.readline() if ready else b""
    if not line:
        sandbox.end_family(guard.pid)
        guard.kill()
    guard.wait()
    guard.stdout.close()
    if not line:
        return End(how=Ended.LOST)
    told = json.loads(line)
    return End(how=Ended(told["how"]), code=told["code"], log=told["log"])


def main() -> int:
    """Guard one program, which the first line of the input states as JSON."""
    program = Program(**json.loads(sys.stdin.buffer.readline()))
    sandbox.adopt_orphans()
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
            preexec_fn=lambda: sandbox.limit_worker(None),  # noqa: PLW1509 - this process has one thread
        )
    except OSError as error:
        _tell(End(how=Ended.ITSELF, code=127, log=str(error)))
        return 0
    tail = bytearray()
    how = _watch(child, program, tail)
    code = child.poll() if how is Ended.ITSELF else None
    sandbox.end_family(os.getpid())
    _tell(End(how=how, code=code, log=tail.decode("utf-8", "replace")))
    return 0


def _tell(end: End) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(asdict(end)) + "\n")
        sys.stdout.flush()


def _watch(child: subprocess.Popen[bytes], program: Program, tail: bytearray) -> Ended:
    """Wait for the child's end, for what it may not do, or for the input's end."""
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
    """Take in what there is; False at the end of it."""
    with contextlib.suppress(BlockingIOError):
        while chunk := os.read(output, 1 << 16):
            tail += chunk
            del tail[:-_LOG_BYTES]
        return False
    return True


def _excess(program: Program) -> Ended | None:
    family = sandbox.descendants(os.getpid())
    if len(family) > sandbox.PROCESSES:
        return Ended.PROCESSES
    held = sum(sandbox.resident_bytes(pid) for pid in family)
    return Ended.MEMORY if program.resident_bytes is not None and held > program.resident_bytes else None


if __name__ == "__main__":
    sys.exit(main())
