"""One warden a worker: it forks the worker, bounds it, keeps the tail of its output and ends its family.

The warden is forked from the template, so that it costs milliseconds. It adopts every orphan of its
worker, which makes "the candidate's processes" exactly "the warden's descendants": none can escape by
forking twice or by starting a session of its own. It runs no code of the candidate.

The worker is forked at once and may wait for its request a while. The limits come with the request: until
then it runs our own code only.
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

from cutegen_nb.gpu import sandbox
from cutegen_nb.gpu.channel import Channel

LOG_BYTES = 32 << 10
"""Tail of the worker's output that is kept."""
_PIPE_BYTES = 1 << 20
"""So that a candidate that prints a gigabyte costs a thousand wake-ups, not sixteen thousand."""
_TICK_S = 0.1
_LAST_WORDS_S = 0.3
_LONGEST_WAIT_S = 900.0
"""Then a worker without a request is let go: on a GPU it holds half a GiB."""


class End(StrEnum):
    """How a worker came to its end."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    DEADLINE = "deadline"
    PROCESSES = "processes"
    MEMORY = "memory"
    CANCELLED = "cancelled"
    UNUSED = "unused"


@dataclass(slots=True, kw_only=True)
class _Watch:
    """What the warden knows while it waits."""

    worker: int
    """Process id."""
    output: int
    """Read end of the worker's stdout and stderr; -1 once it is closed."""
    deadline: float = math.inf
    """On the monotonic clock."""
    memory_bytes: int | None = None
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

    `control` is the evaluator's end for this warden: it brings the limits when the worker has its request,
    and its closing means that neither is wanted any more. `serve` runs in the forked worker with its own
    socket `worker`, and the worker never returns from here.
    """
    channel = Channel(control)
    sandbox.adopt_orphans()
    # As long as there is no request a worker is of no use without its template.
    sandbox.die_with_parent()
    wakeup_read, wakeup_write = children_pipe()
    watch = _fork_worker(control, (wakeup_read, wakeup_write), worker, serve)
    # The warden keeps no copy of the worker's channel: its end of file means that the worker is gone.
    worker.close()
    how = _await_limits(watch, channel, control, wakeup_read) or _wait(watch, control, wakeup_read)
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


def children_pipe() -> tuple[int, int]:
    """A pipe that holds a byte once a child of this process has ended: ``select`` waits for it."""
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
        sandbox.die_with_parent()
        os.dup2(output_write, 1)
        os.dup2(output_write, 2)
        os.close(output_write)
        try:
            serve(worker)
        finally:
            if sys.exc_info()[0] is not None:
                # It did not come as far as its own last line of defence; the tail of its output says why.
                traceback.print_exc(file=sys.__stderr__)
            os._exit(1)
    os.close(output_write)
    os.set_blocking(output_read, False)
    return _Watch(worker=pid, output=output_read)


def _await_limits(watch: _Watch, channel: Channel, control: socket.socket, wakeup: int) -> End | None:
    """Wait for the limits and begin to apply them; the worker's end when it came first."""
    until = time.monotonic() + _LONGEST_WAIT_S
    while True:
        sources = [control.fileno(), wakeup] + ([watch.output] if watch.output >= 0 else [])
        ready, _, _ = select.select(sources, [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return End.UNUSED
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
        return End.CANCELLED
    # From now on it outlives its template: what the candidate started is to be ended in any case.
    sandbox.outlive_parent()
    deadline_s, resident = limits.get("deadline_s"), limits.get("resident_bytes")
    watch.deadline = time.monotonic() + (deadline_s if isinstance(deadline_s, int | float) else 60.0)
    watch.memory_bytes = resident if isinstance(resident, int) else None
    return None


def _ended(watch: _Watch) -> End:
    assert watch.status is not None
    return End.SIGNALLED if os.WIFSIGNALED(watch.status) else End.EXITED


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
                return _ended(watch)
        # The evaluator says nothing more after the limits: anything here is its closing.
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
