"""The evaluator's side of the process tree: one template, and one run a request.

Plain sockets and ``subprocess.Popen`` rather than asyncio's own child processes: a notebook runs
cells under one event loop and unattended sessions under another, and the template outlives both.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cutegen_nb
from cutegen_nb.core.errors import EvaluatorError, WorkerDied
from cutegen_nb.gpu import sandbox
from cutegen_nb.gpu.channel import MalformedRecord, pack, receive

_START_S = 120.0
"""Importing torch and the DSL takes about 4 s warm, and far longer from a cold disk."""
_GRACE_S = 15.0
"""After the deadline, for the warden to end a family and report."""
Answer = Callable[[dict[str, Any]], dict[str, Any] | None]
"""Given each record of the worker; what it returns is sent back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one worker may use."""

    deadline_s: float
    """Wall time."""
    address_space_bytes: int | None = None
    """On top of what the template has mapped; None for no limit (a CUDA context maps 17 GiB)."""
    resident_bytes: int | None = None
    """Resident memory of the worker and its descendants together; None for no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How one worker came to its end."""

    end: dict[str, Any] | None
    """The warden's report; None when the warden itself was killed."""
    malformed: str = ""
    """What was wrong with a record of the worker; empty when nothing was."""


class ForkServer:
    """Starts the template when it is first needed, and again when it was lost."""

    def __init__(self, device: str, architecture: str) -> None:
        self._device = device
        self._architecture = architecture
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
        package_root = str(Path(cutegen_nb.__file__).parent.parent)
        inherited = os.environ.get("PYTHONPATH", "")
        path = [package_root, *(item for item in inherited.split(os.pathsep) if item)]
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
                    env=sandbox.environment(os.environ, scratch, path),
                    pass_fds=[there.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as error:
            here.close()
            shutil.rmtree(scratch, ignore_errors=True)
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
        """A new folder in the template's scratch folder, for files that go with a request; then `discard`."""
        assert self._scratch is not None
        made = self._scratch / name
        made.mkdir()
        return made

    def discard(self, folder: str) -> None:
        """Remove a folder that a worker made in the template's scratch folder."""
        if self._scratch is not None:
            shutil.rmtree(self._scratch / folder, ignore_errors=True)

    async def run(self, request: dict[str, Any], limits: Limits, answer: Answer) -> Run:
        """Have one forked worker carry `request` out; `answer` hears its records.

        When the caller is cancelled, the worker and all it started are killed. Raises WorkerDied when no
        worker could be had.
        """
        await self.ready()
        nonce = secrets.token_hex(16)
        worker_here, worker_there = socket.socketpair()
        warden_here, warden_there = socket.socketpair()
        try:
            self._hand_over(worker_there, warden_there)
        except OSError:
            for sock in (worker_here, warden_here):
                sock.close()
            raise WorkerDied("The process that holds torch and the DSL ended; evaluate again.") from None
        finally:
            worker_there.close()
            warden_there.close()
        worker = await asyncio.open_connection(sock=worker_here)
        warden = await asyncio.open_connection(sock=warden_here)
        try:
            return await self._converse(worker, warden, request | {"nonce": nonce}, limits, answer)
        finally:
            # Its closing tells the warden to end the worker's whole family, if there still is one.
            warden[1].transport.abort()
            worker[1].transport.abort()

    def _hand_over(self, worker: socket.socket, warden: socket.socket) -> None:
        assert self._control is not None
        socket.send_fds(self._control, [b"f"], [worker.fileno(), warden.fileno()])

    async def _converse(
        self,
        worker: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        warden: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        request: dict[str, Any],
        limits: Limits,
        answer: Answer,
    ) -> Run:
        warden[1].write(
            pack(
                {
                    "deadline_s": limits.deadline_s,
                    "address_space_bytes": limits.address_space_bytes,
                    "resident_bytes": limits.resident_bytes,
                }
            )
        )
        worker[1].write(pack(request))
        listening = asyncio.ensure_future(_listen(*worker, str(request["nonce"]), answer))
        try:
            try:
                end = await asyncio.wait_for(receive(warden[0]), limits.deadline_s + _GRACE_S)
            except (TimeoutError, MalformedRecord):
                end = None
            # The family is dead, so that the worker's channel is at its end.
            malformed = await asyncio.wait_for(listening, _GRACE_S)
        finally:
            listening.cancel()
        if end is None and not await self._survived():
            raise WorkerDied("The process that holds torch and the DSL ended; evaluate again.")
        return Run(end=end, malformed=malformed)

    async def _survived(self) -> bool:
        """Whether the template still runs, once its death has had time to show."""
        for _ in range(10):
            if not self.alive:
                return False
            await asyncio.sleep(0.01)
        return True

    def close(self) -> None:
        """End the template, every worker, and remove the scratch folder. May be called again."""
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
            shutil.rmtree(scratch, ignore_errors=True)


def _new_scratch() -> Path:
    try:
        # Not our name: a candidate could tell by it that it is being judged.
        return Path(tempfile.mkdtemp(prefix="kernels-"))
    except OSError as error:
        raise EvaluatorError(
            f"No folder could be made in {tempfile.gettempdir()} ({error}); free space there or set TMPDIR."
        ) from error


async def _listen(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, nonce: str, answer: Answer
) -> str:
    """Hand records on until the channel ends; returns what was malformed, or ""."""
    while True:
        try:
            record = await receive(reader)
        except MalformedRecord as error:
            return str(error)
        if record is None:
            return ""
        if record.get("nonce") != nonce:
            return "a record came without the nonce of this evaluation"
        reply = answer(record)
        if reply is not None:
            writer.write(pack(reply))
