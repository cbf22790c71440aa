"""The evaluator's side of the process tree: one template, one worker a request, and at most one spare.

The spare is a worker forked ahead, so that what every verdict on a GPU would wait for (the CUDA context, the
first compilation of a process, the profiler) is over when its request comes. It is a worker like any other:
it serves one request and ends. Where it was lost, the request goes to a fresh one.

Plain sockets and ``subprocess.Popen`` rather than asyncio's own child processes: a notebook runs
cells under one event loop and unattended sessions under another, and the template outlives both.
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
from cutegen_nb.gpu import sandbox
from cutegen_nb.gpu.channel import pack
from cutegen_nb.gpu.endings import before_it_began
from cutegen_nb.gpu.waiting import Answer, Limits, NeverBegan, Run, Waiting

_START_S = 120.0
"""Importing torch and the DSL takes about 4 s warm, and far longer from a cold disk."""
Files = Callable[[Path], dict[str, Any]]
"""Puts files that go with a request into the worker's folder; what the request says of them."""


class ForkServer:
    """Starts the template when it is first needed, and again when it was lost."""

    def __init__(
        self,
        device: str,
        architecture: str,
        *,
        spare: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """`spare`: whether `keep_spare` has a worker wait; `variables` are added to its environment."""
        self._variables = dict(variables or {})
        self._device = device
        self._architecture = architecture
        self._wants_spare = spare
        self._spare: Waiting | None = None
        self.confine_files = True
        """Whether workers are kept from the person's files."""
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._scratch: Path | None = None
        self._ready = False

    @property
    def process_id(self) -> int | None:
        """The template's process id, None while there is none."""
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        """Whether the template runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the template without waiting for it. Raises WorkerDied when it cannot be started."""
        if self.alive:
            return
        self.close()
        scratch = _new_scratch()
        here, there = socket.socketpair()
        command = [
            # -P: the folder the person works in is no place that a candidate imports from or reads.
            sys.executable, "-P", "-m", "cutegen_nb.gpu.template",
            "--control", str(there.fileno()),
            "--device", self._device,
            "--architecture", self._architecture,
            "--scratch", str(scratch),
        ]  # fmt: skip
        try:
            with (scratch / "template.log").open("wb") as log:
                self._process = subprocess.Popen(
                    command,
                    env=sandbox.environment(os.environ, scratch) | self._variables,
                    pass_fds=[there.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as error:
            here.close()
            sandbox.remove_folder(scratch)
            raise WorkerDied(f"The worker could not be started ({error}); check {sys.executable}.") from error
        finally:
            there.close()
        self._control, self._scratch, self._ready = here, scratch, False

    async def ready(self) -> None:
        """Wait until the template holds torch and the DSL. Raises WorkerDied with its last words."""
        self.start()
        deadline = time.monotonic() + _START_S
        while not self._ready:
            assert self._control is not None
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
        """A worker's folder. The template must run."""
        assert self._scratch is not None
        return self._scratch / name

    def discard(self, folder: str) -> None:
        """Remove a folder that a worker made in the template's scratch folder."""
        if self._scratch is not None and folder:
            sandbox.remove_folder(self._scratch / folder)

    def keep_spare(self) -> None:
        """Have a worker wait for the next request, where one is wanted and none does."""
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
        limits: Limits,
        answer: Answer,
        *,
        files: Files | None = None,
        spare: bool = True,
    ) -> Run:
        """Have one forked worker carry `request` out; `answer` hears its records.

        `spare`: whether the waiting worker may be used up on it. What the worker leaves in its folder stays
        until `discard`. When the caller is cancelled, the worker and all it started are killed. Raises
        WorkerDied when no worker could be had.
        """
        await self.ready()
        waiting = self._take_spare() if spare else None
        if waiting is not None:
            with contextlib.suppress(NeverBegan):
                return await self._carried_out(waiting, request, limits, answer, files)
        try:
            return await self._carried_out(self._fork(warm=False), request, limits, answer, files)
        except NeverBegan as error:
            raise before_it_began(error.end) from None

    def _take_spare(self) -> Waiting | None:
        spare, self._spare = self._spare, None
        if spare is not None and not self._usable(spare):
            self._let_go(spare)
            return None
        return spare

    def _usable(self, spare: Waiting) -> bool:
        return not spare.lost and spare.confine_files == self.confine_files

    def _drop_spare(self) -> None:
        spare, self._spare = self._spare, None
        if spare is not None:
            self._let_go(spare)

    def _let_go(self, waiting: Waiting) -> None:
        waiting.close()
        self.discard(waiting.folder)

    def _fork(self, *, warm: bool) -> Waiting:
        """Fork a worker that waits for its request, warmed up or as it is. Raises WorkerDied."""
        assert self._control is not None
        name = f"run-{secrets.token_hex(8)}"
        worker_here, worker_there = socket.socketpair()
        warden_here, warden_there = socket.socketpair()
        waiting = Waiting(
            worker=worker_here,
            warden=warden_here,
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
            socket.send_fds(self._control, [b"f"], [worker_there.fileno(), warden_there.fileno()])
        except OSError:
            self._let_go(waiting)
            raise WorkerDied("The process that holds torch and the DSL ended; evaluate again.") from None
        finally:
            worker_there.close()
            warden_there.close()
        return waiting

    async def _carried_out(
        self,
        waiting: Waiting,
        request: dict[str, Any],
        limits: Limits,
        answer: Answer,
        files: Files | None,
    ) -> Run:
        def asked() -> dict[str, Any]:
            return request | ({} if files is None else files(self.folder(waiting.folder)))

        run: Run | None = None
        try:
            run = await waiting.carry_out(asked, limits, answer)
            if run.end is None and not await self.survived():
                run = None
                raise WorkerDied("The process that holds torch and the DSL ended; evaluate again.")
            if run.end is None:
                # A stopped warden ends nothing; the template ends every family as it closes.
                await asyncio.to_thread(self.close)
            return run
        finally:
            if run is None:
                self.discard(waiting.folder)

    async def survived(self) -> bool:
        """Whether the template still runs, once its death has had a second to show.

        Its sockets are closed before it counts as dead: taking down its memory takes a while.
        """
        for _ in range(100):
            if not self.alive:
                return False
            await asyncio.sleep(0.01)
        return True

    def close(self) -> None:
        """End the template, every worker, and remove the scratch folder. May be called again."""
        self._drop_spare()
        process, control, scratch = self._process, self._control, self._scratch
        self._process = self._control = self._scratch = None
        if control is not None:
            control.close()
        if process is not None:
            # Its control socket is closed: it ends its wardens' families and itself.
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                sandbox.end_family(process.pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
                process.wait()
        if scratch is not None:
            sandbox.remove_folder(scratch)


def _new_scratch() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=sandbox.SCRATCH_PREFIX))
    except OSError as error:
        raise EvaluatorError(
            f"No folder could be made in {tempfile.gettempdir()} ({error}); free space there or set TMPDIR."
        ) from error
