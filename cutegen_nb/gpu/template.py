"""The template: a process that holds torch and the DSL imported and forks one warden for each request.

Run as ``python -m cutegen_nb.gpu.template --control FD --device cuda|simulator --architecture sm_80``.
It computes nothing at the default thread count, which would make every fork of it hang, and makes no CUDA
context, after which no fork of it could use the GPU.
"""

from __future__ import annotations

import argparse
import functools
import gc
import os
import select
import signal
import socket
import sys
from pathlib import Path

from cutegen_nb.gpu import sandbox, warming
from cutegen_nb.gpu.warden import children_pipe, guard
from cutegen_nb.gpu.worker import Surroundings, prepare, serve

_DESCRIPTORS = 2
"""Sent with each request: the worker's channel and the warden's."""


def main() -> int:
    """Serve until the evaluator closes the control socket."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--device", choices=("cuda", "simulator"), required=True)
    parser.add_argument("--architecture", required=True)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--plain", action="store_true", help="import nothing ahead")
    arguments = parser.parse_args()
    command = sys.argv[1:]
    sys.argv[:] = [""]  # a candidate could tell by it that it is being judged
    control = socket.socket(fileno=arguments.control)
    sandbox.adopt_orphans()
    surroundings = prepare(arguments.device, arguments.architecture, arguments.scratch, plain=arguments.plain)
    # From here on: what was imported so far is cached as anywhere, or every start would compile it again
    # where an installer leaves that to the first import. A candidate's import leaves nothing.
    sys.dont_write_bytecode = True
    if arguments.device == "cuda" and not arguments.plain and warming.spoilt():
        # Some import asked CUDA after all: slower without it, but no fork of this process has a GPU.
        os.set_inheritable(control.fileno(), True)
        again = [sys.executable, "-P", "-m", "cutegen_nb.gpu.template", *command, "--plain"]
        os.execv(sys.executable, again)  # noqa: S606 - ourselves
    # Objects made so far live for ever: keep the collector from touching, and so copying, their pages.
    gc.collect()
    gc.freeze()
    control.sendall(b"r")
    _serve(control, surroundings)
    # The evaluator has closed its end, or was killed: nothing may be left of what it started.
    sandbox.end_family(os.getpid())
    sandbox.remove_folder(Path(arguments.scratch))
    return 0


def _serve(control: socket.socket, surroundings: Surroundings) -> None:
    wakeup_read, wakeup_write = children_pipe()
    wardens: set[int] = set()
    while True:
        ready, _, _ = select.select([control.fileno(), wakeup_read], [], [])
        if wakeup_read in ready:
            os.read(wakeup_read, 4096)
            _collect(wardens)
        if control.fileno() not in ready:
            continue
        request, descriptors, _, _ = socket.recv_fds(control, 1, _DESCRIPTORS)
        if not request:
            return
        warden = os.fork()
        if warden == 0:
            signal.set_wakeup_fd(-1)
            for descriptor in (wakeup_read, wakeup_write):
                os.close(descriptor)
            control.close()
            _ward(descriptors, surroundings)
        wardens.add(warden)
        for descriptor in descriptors:
            os.close(descriptor)


def _collect(wardens: set[int]) -> None:
    """Take ended wardens in. One that was killed left a family behind, which is now ours to end."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid in wardens:
            wardens.discard(pid)
            if status != 0:
                _end_orphans(wardens)


def _end_orphans(wardens: set[int]) -> None:
    for pid in sandbox.children(os.getpid()):
        if pid not in wardens:
            sandbox.end_family(pid)
            sandbox.kill(pid)
            sandbox.end_family(pid)


def _ward(descriptors: list[int], surroundings: Surroundings) -> None:
    """Be a warden, and in its fork the worker; never returns."""
    os.setsid()
    worker_fd, warden_fd = descriptors
    guard(
        socket.socket(fileno=warden_fd),
        socket.socket(fileno=worker_fd),
        functools.partial(serve, surroundings=surroundings),
    )
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
