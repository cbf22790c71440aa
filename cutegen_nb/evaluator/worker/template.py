"""Template process: holds torch and the DSL imported and forks one supervisor for each request.

Run as ``python -m cutegen_nb.evaluator.worker.template --control FD --device cuda|simulator
--architecture sm_80``.
The template computes nothing at the default thread count, because every fork of it would hang then. It
creates no CUDA context, because no fork of it could use the GPU then.
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
from typing import TYPE_CHECKING

from cutegen_nb.evaluator.process import process_tree
from cutegen_nb.evaluator.process.supervisor import children_pipe, supervise

if TYPE_CHECKING:
    from cutegen_nb.evaluator.worker.worker import WorkerContext

_DESCRIPTORS = 2
"""Number of file descriptors sent with each request: the worker's channel and the supervisor's."""


def main() -> int:
    """Serve requests until the evaluator closes the control socket."""
    # Almost all that the imports make stays: to look through it again and again took a fifth of the start.
    gc.disable()
    from cutegen_nb.evaluator.worker import warmup  # noqa: PLC0415 - torch, after the line above
    from cutegen_nb.evaluator.worker.worker import prepare  # noqa: PLC0415

    parser = argparse.ArgumentParser()
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--device", choices=("cuda", "simulator"), required=True)
    parser.add_argument("--architecture", required=True)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--plain", action="store_true", help="import nothing ahead")
    arguments = parser.parse_args()
    command = sys.argv[1:]
    sys.argv[:] = [""]  # the arguments would tell a candidate that it is being judged
    control = socket.socket(fileno=arguments.control)
    process_tree.adopt_orphans()
    surroundings = prepare(arguments.device, arguments.architecture, arguments.scratch, plain=arguments.plain)
    # Only from here on. Bytecode of the imports so far is cached, or every start would compile them again
    # where the installer has not. A candidate's import leaves no bytecode.
    sys.dont_write_bytecode = True
    if arguments.device == "cuda" and not arguments.plain and warmup.fork_lacks_cuda():
        # Some import has used CUDA, so no fork of this process has a GPU: start again without early imports,
        # which is slower.
        os.set_inheritable(control.fileno(), True)
        again = [sys.executable, "-P", "-m", "cutegen_nb.evaluator.worker.template", *command, "--plain"]
        os.execv(sys.executable, again)  # noqa: S606 - ourselves
    # Objects made so far live for ever: keep the collector from touching their pages, which copies them.
    gc.collect()
    gc.freeze()
    gc.enable()
    control.sendall(b"r")
    _serve(control, surroundings)
    # The evaluator has closed its end or was killed: leave no process and no file behind.
    process_tree.kill_descendants(os.getpid())
    process_tree.remove_folder(Path(arguments.scratch))
    return 0


def _serve(control: socket.socket, surroundings: WorkerContext) -> None:
    wakeup_read, wakeup_write = children_pipe()
    supervisors: set[int] = set()
    while True:
        ready, _, _ = select.select([control.fileno(), wakeup_read], [], [])
        if wakeup_read in ready:
            os.read(wakeup_read, 4096)
            _collect(supervisors)
        if control.fileno() not in ready:
            continue
        request, descriptors, _, _ = socket.recv_fds(control, 1, _DESCRIPTORS)
        if not request:
            return
        supervisor = os.fork()
        if supervisor == 0:
            signal.set_wakeup_fd(-1)
            for descriptor in (wakeup_read, wakeup_write):
                os.close(descriptor)
            control.close()
            _supervise(descriptors, surroundings)
        supervisors.add(supervisor)
        for descriptor in descriptors:
            os.close(descriptor)


def _collect(supervisors: set[int]) -> None:
    """Collect ended supervisors; end the processes that a killed one leaves behind."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid in supervisors:
            supervisors.discard(pid)
            if status != 0:
                _end_orphans(supervisors)


def _end_orphans(supervisors: set[int]) -> None:
    for pid in process_tree.children(os.getpid()):
        if pid not in supervisors:
            process_tree.kill_descendants(pid)
            process_tree.kill(pid)
            process_tree.kill_descendants(pid)


def _supervise(descriptors: list[int], surroundings: WorkerContext) -> None:
    """Run as a supervisor, and in its fork as the worker; never returns."""
    from cutegen_nb.evaluator.worker.worker import serve  # noqa: PLC0415 - imported by the template

    os.setsid()
    worker_fd, supervisor_fd = descriptors
    supervise(
        socket.socket(fileno=supervisor_fd),
        socket.socket(fileno=worker_fd),
        functools.partial(serve, surroundings=surroundings),
    )
    os._exit(0)


if __name__ == "__main__":
    status = main()
    # Not by sys.exit: to take torch and the DSL apart takes a second, and the evaluator waits for it.
    os._exit(status)
