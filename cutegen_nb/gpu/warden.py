"""One warden a worker: it forks the worker, bounds it, keeps the tail of its output and ends its family.

The warden is forked from the template, so that it costs milliseconds. It adopts every orphan of its
worker, which makes "the candidate's processes" exactly "the warden's descendants": none can escape by
forking twice or by starting a session of its own. It runs no code of the candidate.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from cutegen_nb.gpu import sandbox
from cutegen_nb.gpu.channel import Channel

LOG_BYTES = 32 << 10
"""Tail of the worker's output that is kept."""
_PIPE_BYTES = 1 << 20
"""So that a candidate that prints a gigabyte costs a thousand wake-ups, not sixteen thousand."""
_TICK_S = 0.1
_LAST_WORDS_S = 0.3


class End(StrEnum):
    """How a worker came to its end."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    DEADLINE = "deadline"
    PROCESSES = "processes"
    MEMORY = "memory"
    CANCELLED = "cancelled"


@dataclass(slots=True, kw_only=True)
class _Watch:
    """What the warden knows while it waits."""

    worker: int
    """Process id."""
    output: int
    """Read end of the worker's stdout and stderr; -1 once it is closed."""
    deadline: float
    """On the monotonic clock."""
    memory_bytes: int | None
    """Limit on resident memory of the whole family; None for none."""
    tail: bytearray = field(default_factory=bytearray)
    """Last bytes the worker printed."""
    status: int | None = None
    """As waitpid gave it; None while the worker runs."""
    peak_bytes: int = 0
    """Highest resident memory seen."""
    processes: int = 1
    """Most processes seen."""


def guard(control: socket.socket, worker: socket.socket, serve: Callable[[socket.socket], None]) -> None:
    """Run one worker to its end and report it.

    `control` is the evaluator's end for this warden: it brings ``start`` with the limits, and its closing
    means that the evaluation is no longer wanted. `serve` runs in the forked worker with its own socket
    `worker`, and the worker never returns from here.
    """
    channel = Channel(control)
    start = channel.receive()
    if start is None:
        return
    sandbox.adopt_orphans()
    wakeup_read, wakeup_write = os.pipe()
    os.set_blocking(wakeup_write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
    watch = _fork_worker(start, control, (wakeup_read, wakeup_write), worker, serve)
    # The warden keeps no copy of the worker's channel: its end of file means that the worker is gone.
    worker.close()
    how = _wait(watch, control, wakeup_read)
    if how is End.DEADLINE:
        _last_words(watch)
    # The worker itself is a descendant too; a clean end leaves none.
    left = sandbox.end_family(os.getpid())
    sandbox.reap(os.getpid())
    _drain(watch)
    with contextlib.suppress(OSError):
        channel.send(
            "end",
            how=how.value,
            code=os.waitstatus_to_exitcode(watch.status) if watch.status is not None else None,
            log=bytes(watch.tail).decode("utf-8", "replace"),
            peak_bytes=watch.peak_bytes,
            processes=watch.processes,
            left=left,
        )


def _fork_worker(
    start: dict[str, object],
    control: socket.socket,
    wakeup: tuple[int, int],
    worker: socket.socket,
    serve: Callable[[socket.socket], None],
) -> _Watch:
    output_read, output_write = os.pipe()
    with contextlib.suppress(OSError):
        fcntl.fcntl(output_write, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in (*wakeup, output_read):
            os.close(descriptor)
        control.close()
        os.setsid()
        sandbox.die_with_parent()
        os.dup2(output_write, 1)
        os.dup2(output_write, 2)
        os.close(output_write)
        memory = start.get("address_space_bytes")
        sandbox.limit_worker(memory if isinstance(memory, int) else None)
        serve(worker)
        os._exit(0)
    os.close(output_write)
    os.set_blocking(output_read, False)
    deadline_s, resident = start.get("deadline_s"), start.get("resident_bytes")
    return _Watch(
        worker=pid,
        output=output_read,
        deadline=time.monotonic() + (deadline_s if isinstance(deadline_s, int | float) else 60.0),
        memory_bytes=resident if isinstance(resident, int) else None,
    )


def _wait(watch: _Watch, control: socket.socket, wakeup: int) -> End:
    next_look = time.monotonic() + _TICK_S
    while True:
        now = time.monotonic()
        sources = [control.fileno(), wakeup] + ([watch.output] if watch.output >= 0 else [])
        timeout = max(0.0, min(watch.deadline, next_look) - now)
        ready, _, _ = select.select(sources, [], [], timeout)
        if watch.output in ready:
            _read_output(watch)
        if wakeup in ready:
            os.read(wakeup, 4096)
            if _collect(watch):
                assert watch.status is not None
                return End.SIGNALLED if os.WIFSIGNALED(watch.status) else End.EXITED
        # The evaluator says nothing more after `start`: anything here is its closing.
        if control.fileno() in ready:
            return End.CANCELLED
        now = time.monotonic()
        if now >= watch.deadline:
            return End.DEADLINE
        if now >= next_look:
            next_look = now + _TICK_S
            excess = _look(watch)
            if excess is not None:
                return excess


def _collect(watch: _Watch) -> bool:
    """Take ended children in; True once the worker is among them."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return watch.status is not None
        if pid == watch.worker:
            watch.status = status
        if pid == 0:
            return watch.status is not None


def _look(watch: _Watch) -> End | None:
    family = sandbox.descendants(os.getpid())
    watch.processes = max(watch.processes, len(family))
    if len(family) > sandbox.PROCESSES:
        return End.PROCESSES
    resident = sum(sandbox.resident_bytes(pid) for pid in family)
    watch.peak_bytes = max(watch.peak_bytes, resident)
    if watch.memory_bytes is not None and resident > watch.memory_bytes:
        return End.MEMORY
    return None


def _last_words(watch: _Watch) -> None:
    """Have the worker print where it is: its faulthandler listens to SIGUSR1."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(watch.worker, signal.SIGUSR1)
    until = time.monotonic() + _LAST_WORDS_S
    while watch.output >= 0 and (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([watch.output], [], [], left)
        if ready:
            _read_output(watch)


def _read_output(watch: _Watch) -> None:
    try:
        part = os.read(watch.output, 1 << 20)
    except BlockingIOError:
        return
    if not part:
        os.close(watch.output)
        watch.output = -1
        return
    watch.tail += part[-LOG_BYTES:]
    del watch.tail[:-LOG_BYTES]


def _drain(watch: _Watch) -> None:
    """Read what is still in the pipe after everybody who could write is dead."""
    while watch.output >= 0:
        ready, _, _ = select.select([watch.output], [], [], 0)
        if not ready:
            return
        _read_output(watch)
