"""Supervisor process of one worker, which forks, limits, logs and ends it.

The supervisor is forked from the template, which takes milliseconds. It adopts every orphan of its worker, so
the candidate's processes are exactly the supervisor's descendants. None can escape by forking twice or by
starting a session of its own. The supervisor runs no code of the candidate.

The worker is forked at once and may wait for its request. The limits come with the request; until then the
worker runs this package's own code only.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from cutegen_nb.evaluator.process import process_tree
from cutegen_nb.evaluator.process.channel import Channel

LOG_BYTES = 32 << 10
"""Tail of the worker's output that is kept, in bytes."""
_PIPE_BYTES = 1 << 20
"""Bytes that the output pipe holds: a printed gigabyte costs a thousand wake-ups, not sixteen thousand."""
_TICK_S = 0.1
"""Seconds between two checks of memory and number of processes."""
_TRACEBACK_S = 0.3
"""Seconds in which the worker may print its traceback after the deadline."""
_IDLE_TIMEOUT_S = 900.0
"""Seconds after which a worker without a request is ended: on a GPU it holds half a GiB."""


class WorkerEnd(StrEnum):
    """Reason for a worker's end."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    DEADLINE = "deadline"
    PROCESSES = "processes"
    MEMORY = "memory"
    CANCELLED = "cancelled"
    UNUSED = "unused"


@dataclass(slots=True, kw_only=True)
class _Watch:
    """State of a supervisor while its worker runs."""

    worker: int
    """Process id of the worker."""
    output: int
    """Read end of the worker's stdout and stderr; -1 once it is closed."""
    deadline: float = math.inf
    """Deadline in seconds on the monotonic clock; infinite until the limits come."""
    memory_bytes: int | None = None
    """Limit on the resident memory of all descendants together; None for none."""
    tail: bytearray = field(default_factory=bytearray)
    """Last bytes that the worker printed."""
    status: int | None = None
    """Wait status of the worker, from waitpid; None while it runs."""
    peak_bytes: int = 0
    """Highest resident memory seen, of all descendants together."""
    processes: int = 1
    """Highest number of processes seen."""


def supervise(control: socket.socket, worker: socket.socket, serve: Callable[[socket.socket], None]) -> None:
    """Run one worker to its end and report that end on `control`.

    `control` leads to the evaluator. It brings the limits when the worker has its request. Its closing
    cancels the worker. `serve` runs in the forked worker with the worker's own socket `worker`, and the
    worker never returns from here.
    """
    channel = Channel(control)
    process_tree.adopt_orphans()
    # Until there is a request, a worker is of no use without its template.
    process_tree.die_with_parent()
    wakeup_read, wakeup_write = children_pipe()
    watch = _fork_worker(control, (wakeup_read, wakeup_write), worker, serve)
    # No copy of the worker's channel stays here, so its end of file means that the worker is gone.
    worker.close()
    how = _await_limits(watch, channel, control, wakeup_read) or _wait(watch, control, wakeup_read)
    if how is WorkerEnd.DEADLINE:
        _request_traceback(watch)
    # The worker itself is a descendant too; a clean end leaves none.
    left = process_tree.kill_descendants(os.getpid())
    process_tree.reap(os.getpid())
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


def children_pipe() -> tuple[int, int]:
    """Create a pipe that gets a byte when a child of this process ends. ``select`` can wait for it."""
    wakeup_read, wakeup_write = os.pipe()
    os.set_blocking(wakeup_write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
    return wakeup_read, wakeup_write


def _fork_worker(
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
        process_tree.die_with_parent()
        os.dup2(output_write, 1)
        os.dup2(output_write, 2)
        os.close(output_write)
        try:
            serve(worker)
        finally:
            if sys.exc_info()[0] is not None:
                # `serve` failed before its own error handling; the tail of the output shows the traceback.
                traceback.print_exc(file=sys.__stderr__)
            os._exit(1)
    os.close(output_write)
    os.set_blocking(output_read, False)
    return _Watch(worker=pid, output=output_read)


def _await_limits(watch: _Watch, channel: Channel, control: socket.socket, wakeup: int) -> WorkerEnd | None:
    """Wait for the limits and start to apply them. Return the worker's end when it came first, else None."""
    until = time.monotonic() + _IDLE_TIMEOUT_S
    while True:
        sources = [control.fileno(), wakeup] + ([watch.output] if watch.output >= 0 else [])
        ready, _, _ = select.select(sources, [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return WorkerEnd.UNUSED
        if watch.output in ready:
            _read_output(watch)
        if wakeup in ready:
            os.read(wakeup, 4096)
            if _collect(watch):
                return _ended(watch)
        if control.fileno() in ready:
            break
    limits = channel.receive()
    if limits is None:
        return WorkerEnd.CANCELLED
    # From now on the supervisor outlives the template, so that the candidate's processes are always ended.
    process_tree.outlive_parent()
    deadline_s, resident = limits.get("deadline_s"), limits.get("resident_bytes")
    watch.deadline = time.monotonic() + (deadline_s if isinstance(deadline_s, int | float) else 60.0)
    watch.memory_bytes = resident if isinstance(resident, int) else None
    return None


def _ended(watch: _Watch) -> WorkerEnd:
    assert watch.status is not None
    return WorkerEnd.SIGNALLED if os.WIFSIGNALED(watch.status) else WorkerEnd.EXITED


def _wait(watch: _Watch, control: socket.socket, wakeup: int) -> WorkerEnd:
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
                return _ended(watch)
        # The evaluator sends nothing after the limits: a readable socket means that it was closed.
        if control.fileno() in ready:
            return WorkerEnd.CANCELLED
        now = time.monotonic()
        if now >= watch.deadline:
            return WorkerEnd.DEADLINE
        if now >= next_look:
            next_look = now + _TICK_S
            excess = _check_limits(watch)
            if excess is not None:
                return excess


def _collect(watch: _Watch) -> bool:
    """Collect the status of ended children. Return True once the worker has ended."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return watch.status is not None
        if pid == watch.worker:
            watch.status = status
        if pid == 0:
            return watch.status is not None


def _check_limits(watch: _Watch) -> WorkerEnd | None:
    family = process_tree.descendants(os.getpid())
    watch.processes = max(watch.processes, len(family))
    if len(family) > process_tree.PROCESSES:
        return WorkerEnd.PROCESSES
    resident = sum(process_tree.resident_bytes(pid) for pid in family)
    watch.peak_bytes = max(watch.peak_bytes, resident)
    if watch.memory_bytes is not None and resident > watch.memory_bytes:
        return WorkerEnd.MEMORY
    return None


def _request_traceback(watch: _Watch) -> None:
    """Have the worker print its traceback: its faulthandler is registered for SIGUSR1."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(watch.worker, signal.SIGUSR1)
    until = time.monotonic() + _TRACEBACK_S
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
    """Read the rest of the pipe after every process that could write to it is dead."""
    while watch.output >= 0:
        ready, _, _ = select.select([watch.output], [], [], 0)
        if not ready:
            return
        _read_output(watch)
