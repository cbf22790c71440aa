"""Fork server: one template process, one forked worker per request, at most one spare worker.

The template holds torch and the DSL imported. The spare is a worker forked ahead, so that its warm-up on a
GPU (CUDA context, first compilation, profiler) is over when its request comes. Like any worker it serves one
request and ends. If the spare was lost, its request goes to a fresh worker.

Plain sockets and ``subprocess.Popen`` are used instead of asyncio's child processes: a notebook runs cells
under one event loop and unattended sessions under another, and the template outlives both.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cutegen_nb.core.errors import EvaluatorError, WorkerDied
from cutegen_nb.evaluator.process import process_tree
from cutegen_nb.evaluator.process.channel import pack
from cutegen_nb.evaluator.process.exit_report import never_started_error
from cutegen_nb.evaluator.process.worker_handle import (
    ProcessLimits,
    RecordCallback,
    WaitingWorker,
    WorkerNeverStarted,
    WorkerRun,
)

_START_S = 120.0
"""Timeout in seconds of the template's start. Its imports take about 4 s warm, far longer from cold disk."""
Files = Callable[[Path], dict[str, Any]]
"""Function that puts a request's files into the worker's folder and returns members to add to the request."""


class TemplateLost(WorkerDied):
    """The template of a request ended before the request's worker did, by itself or because it was closed."""

    def __init__(self) -> None:
        super().__init__("The process that holds torch and the DSL ended; evaluate again.")


class ForkServer:
    """Owner of the template process: starts it on first use, and again when it was lost."""

    def __init__(
        self,
        device: str,
        architecture: str,
        *,
        spare: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Start nothing yet.

        With `spare`, `keep_spare` has a worker wait. `variables` are added to the template's environment.
        """
        self._variables = dict(variables or {})
        self._device = device
        self._architecture = architecture
        self._wants_spare = spare
        self._spare: WaitingWorker | None = None
        self.confine_files = True
        """True if workers are kept from the person's files."""
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._scratch: Path | None = None
        self._resisting: list[str] = []
        """Folders in the scratch folder that could not be removed yet."""
        self._ready = False

    @property
    def process_id(self) -> int | None:
        """Process id of the template; None while there is none."""
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        """True if the template runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the template without waiting for it.

        Raises WorkerDied when it cannot be started, EvaluatorError when no scratch folder can be made.
        """
        if self.alive:
            return
        self.close()
        scratch = _new_scratch()
        here, there = socket.socketpair()
        command = [
            # -P keeps the working folder out of sys.path: a candidate may not import from it or read it.
            sys.executable, "-P", "-m", "cutegen_nb.evaluator.worker.template",
            "--control", str(there.fileno()),
            "--device", self._device,
            "--architecture", self._architecture,
            "--scratch", str(scratch),
        ]  # fmt: skip
        try:
            with (scratch / "template.log").open("wb") as log:
                self._process = subprocess.Popen(
                    command,
                    env=process_tree.environment(os.environ, scratch) | self._variables,
                    pass_fds=[there.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as error:
            here.close()
            process_tree.remove_folder(scratch)
            raise WorkerDied(f"The worker could not be started ({error}); check {sys.executable}.") from error
        finally:
            there.close()
        self._control, self._scratch, self._ready = here, scratch, False

    async def ready(self) -> None:
        """Wait until the template holds torch and the DSL. Raises WorkerDied with its log's last line."""
        self.start()
        deadline = time.monotonic() + _START_S
        while not self._ready:
            if self._control is None:
                raise TemplateLost  # another request waited too, and found that the template had died
            readable, _, _ = select.select([self._control], [], [], 0)
            if readable:
                if not self._control.recv(1):
                    raise self._died()
                self._ready = True
                return
            if time.monotonic() > deadline:
                raise WorkerDied(f"The worker was not ready after {_START_S:.0f} s; is the disk very slow?")
            await asyncio.sleep(0.01)

    def _died(self) -> WorkerDied:
        log = ""
        if self._scratch is not None:
            with contextlib.suppress(OSError):
                log = (self._scratch / "template.log").read_text(errors="replace")
        lines = [line for line in log.splitlines() if line.strip()]
        said = f": {lines[-1]}" if lines else ""
        self.close()
        return WorkerDied(
            f"The process that holds torch and the DSL ended while starting{said}. "
            "`cutegen-nb doctor` says what is missing."
        )

    def folder(self, name: str) -> Path:
        """Path of a worker's folder. The template must run."""
        assert self._scratch is not None
        return self._scratch / name

    def discard(self, folder: str) -> None:
        """Remove a folder that a worker made in the template's scratch folder.

        A cancelled request's worker may write into its folder for a moment more. What is left of such a
        folder is removed with the next one.
        """
        if self._scratch is None or not folder:
            return
        names = dict.fromkeys((*self._resisting, folder))
        for name in names:
            process_tree.remove_folder(self._scratch / name)
        self._resisting = [name for name in names if (self._scratch / name).exists()]

    def keep_spare(self) -> None:
        """Fork a spare worker for the next request, where one is wanted and no usable one waits."""
        if not self._wants_spare or not self._ready or not self.alive:
            return
        if self._spare is not None and self._usable(self._spare):
            return
        self._drop_spare()
        with contextlib.suppress(WorkerDied):  # the next request starts a new template
            self._spare = self._fork(warm=True)

    async def run(
        self,
        request: dict[str, Any],
        limits: ProcessLimits,
        answer: RecordCallback,
        *,
        files: Files | None = None,
        spare: bool = True,
    ) -> WorkerRun:
        """Carry out `request` in one forked worker; `answer` handles the worker's records.

        With `spare`, the spare worker may be used for it. Files in the worker's folder stay until `discard`.
        When the caller is cancelled, the worker and all it started are killed. Several requests may run at
        once. Raises TemplateLost when the template ended meanwhile, WorkerDied when no worker could be had.
        """
        await self.ready()
        template = self._process
        try:
            return await self._served(request, limits, answer, files, spare=spare)
        except WorkerDied as error:
            if await self._survived(template):
                raise
            raise TemplateLost from error

    async def _served(
        self,
        request: dict[str, Any],
        limits: ProcessLimits,
        answer: RecordCallback,
        files: Files | None,
        *,
        spare: bool,
    ) -> WorkerRun:
        waiting = self._take_spare() if spare else None
        if waiting is not None:
            with contextlib.suppress(WorkerNeverStarted):
                return await self._carried_out(waiting, request, limits, answer, files)
        try:
            return await self._carried_out(self._fork(warm=False), request, limits, answer, files)
        except WorkerNeverStarted as error:
            raise never_started_error(error.end) from None

    def _take_spare(self) -> WaitingWorker | None:
        spare, self._spare = self._spare, None
        if spare is not None and not self._usable(spare):
            self._let_go(spare)
            return None
        return spare

    def _usable(self, spare: WaitingWorker) -> bool:
        return not spare.lost and spare.confine_files == self.confine_files

    def _drop_spare(self) -> None:
        spare, self._spare = self._spare, None
        if spare is not None:
            self._let_go(spare)

    def _let_go(self, waiting: WaitingWorker) -> None:
        waiting.close()
        self.discard(waiting.folder)

    def _fork(self, *, warm: bool) -> WaitingWorker:
        """Fork a worker that waits for its request, warmed up if `warm`. Raises TemplateLost."""
        if self._control is None:
            raise TemplateLost
        name = f"run-{secrets.token_hex(8)}"
        worker_here, worker_there = socket.socketpair()
        supervisor_here, supervisor_there = socket.socketpair()
        waiting = WaitingWorker(
            worker=worker_here,
            supervisor=supervisor_here,
            nonce=secrets.token_hex(16),
            folder=name,
            confine_files=self.confine_files,
        )
        setting = {
            "nonce": waiting.nonce,
            "folder": name,
            "confine_files": waiting.confine_files,
            "warm": warm,
        }
        try:
            self.folder(name).mkdir()
            worker_here.sendall(pack(setting))
            socket.send_fds(self._control, [b"f"], [worker_there.fileno(), supervisor_there.fileno()])
        except OSError:
            self._let_go(waiting)
            raise TemplateLost from None
        finally:
            worker_there.close()
            supervisor_there.close()
        return waiting

    async def _carried_out(
        self,
        waiting: WaitingWorker,
        request: dict[str, Any],
        limits: ProcessLimits,
        answer: RecordCallback,
        files: Files | None,
    ) -> WorkerRun:
        def asked() -> dict[str, Any]:
            return request | ({} if files is None else files(self.folder(waiting.folder)))

        run: WorkerRun | None = None
        template = self._process
        try:
            run = await waiting.carry_out(asked, limits, answer)
            if run.end is None and not await self._survived(template):
                run = None
                raise TemplateLost
            if run.end is None:
                # A stopped supervisor ends no process; the template ends all of them when it closes.
                await asyncio.to_thread(self.close)
            return run
        finally:
            if run is None:
                self.discard(waiting.folder)

    async def _survived(self, template: subprocess.Popen[bytes] | None) -> bool:
        """Return whether `template` is still the one in use, and runs, after one second.

        A dying template closes its sockets before it counts as dead: releasing its memory takes a while.
        """
        for _ in range(100):
            if template is None or template is not self._process or not self.alive:
                return False
            await asyncio.sleep(0.01)
        return True

    def close(self) -> None:
        """End the template and every worker, and remove the scratch folder. May be called again."""
        self._drop_spare()
        process, control, scratch = self._process, self._control, self._scratch
        self._process = self._control = self._scratch = None
        self._resisting = []
        if control is not None:
            control.close()
        if process is not None:
            # The closed control socket makes the template end its supervisors' processes and itself.
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process_tree.kill_descendants(process.pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
                process.wait()
        if scratch is not None:
            process_tree.remove_folder(scratch)


def _new_scratch() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=process_tree.SCRATCH_PREFIX))
    except OSError as error:
        raise EvaluatorError(
            f"No folder could be made in {tempfile.gettempdir()} ({error}); free space there or set TMPDIR."
        ) from error
