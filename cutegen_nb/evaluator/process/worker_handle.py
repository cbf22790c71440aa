"""Evaluator's handle on one worker, from the wait for a request to the worker's end."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from cutegen_nb.evaluator.process.channel import MalformedRecord, pack, receive
from cutegen_nb.evaluator.process.supervisor import WorkerEnd

_REPORT_GRACE_S = 15.0
"""Seconds after the deadline in which the supervisor ends all processes and reports."""
_WARM_S = 60.0
"""Timeout in seconds of a worker's warm-up: several times what a CUDA context and a compilation take."""
Reply = dict[str, Any] | None
"""Record sent back to a worker; None for none."""
RecordCallback = Callable[[dict[str, Any]], Reply | Awaitable[Reply]]
"""Handler of a worker's records; the reply, returned at once or awaited, is sent back."""
ChannelStreams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
"""Reader and writer of one channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """Resource limits of one worker."""

    deadline_s: float
    """Wall time in seconds."""
    address_space_bytes: int | None = None
    """Address space beyond the template's; None for no limit (a CUDA context maps 17 GiB)."""
    resident_bytes: int | None = None
    """Resident memory of the worker and its descendants together; None for no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRun:
    """Outcome of one worker."""

    end: dict[str, Any] | None
    """Report of the supervisor; None when the supervisor itself was killed or stopped."""
    malformed: str = ""
    """Fault in a record of the worker; empty for none."""
    folder: str = ""
    """Name of the worker's folder in the template's scratch folder, for `discard`."""


class WorkerNeverStarted(Exception):
    """Error for a worker that ended before it began with its request; the candidate was not touched."""

    def __init__(self, end: dict[str, Any] | None) -> None:
        super().__init__(end)
        self.end = end
        """Report of the supervisor; None where none came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingWorker:
    """Worker that has no request yet, and its supervisor process."""

    worker: socket.socket
    """Channel of the worker: takes the request, brings the worker's records."""
    supervisor: socket.socket
    """Channel of the supervisor: takes the limits, which start the clock. Its closing ends the worker."""
    nonce: str
    """Secret that every record of this worker carries."""
    folder: str
    """Name of the worker's own folder in the template's scratch folder."""
    confine_files: bool
    """True if the worker is kept from the person's files."""

    @property
    def lost(self) -> bool:
        """True if the worker has ended; before the request its supervisor sends nothing else."""
        readable, _, _ = select.select([self.supervisor], [], [], 0)
        return bool(readable)

    def close(self) -> None:
        """Close both channels; the supervisor then ends the worker."""
        self.supervisor.close()
        self.worker.close()

    async def carry_out(
        self, request: Callable[[], dict[str, Any]], limits: ProcessLimits, answer: RecordCallback
    ) -> WorkerRun:
        """Have the worker carry out one request; `answer` handles its records.

        `request` is called for the request once the worker is ready. The worker and all it started are dead
        afterwards, also when the caller is cancelled. Raises NeverBegan.
        """
        worker = await asyncio.open_connection(sock=self.worker)
        supervisor = await asyncio.open_connection(sock=self.supervisor)
        try:
            if not await _ready(worker, self.nonce):
                raise WorkerNeverStarted(await _reported(supervisor, _REPORT_GRACE_S))
            asked = request() | {
                "folder": self.folder,
                "address_space_bytes": limits.address_space_bytes,
            }
            return await self._conversed(worker, supervisor, asked, limits, answer)
        finally:
            # The closed channel tells the supervisor to end any process of the worker that is left.
            supervisor[1].transport.abort()
            worker[1].transport.abort()

    async def _conversed(
        self,
        worker: ChannelStreams,
        supervisor: ChannelStreams,
        request: dict[str, Any],
        limits: ProcessLimits,
        answer: RecordCallback,
    ) -> WorkerRun:
        supervisor[1].write(pack({"deadline_s": limits.deadline_s, "resident_bytes": limits.resident_bytes}))
        worker[1].write(pack(request))
        begun = False

        def hear(record: dict[str, Any]) -> Reply | Awaitable[Reply]:
            nonlocal begun
            if begun:
                return answer(record)
            begun = True  # the first record is ``begun``
            return None

        listening = asyncio.ensure_future(_listen(*worker, self.nonce, hear))
        try:
            end = await _reported(supervisor, limits.deadline_s + _REPORT_GRACE_S)
            # All processes of the worker are dead, so its channel is at its end.
            malformed = await asyncio.wait_for(listening, _REPORT_GRACE_S)
        except TimeoutError:
            end, malformed = None, ""  # a process still sends, or is being answered: no clean end
        finally:
            listening.cancel()
        if (
            not begun
            and not malformed
            and (end is None or end.get("how") in {WorkerEnd.SIGNALLED, WorkerEnd.EXITED})
        ):
            # A worker sends ``begun`` before it touches the candidate: the candidate did not cause this end.
            raise WorkerNeverStarted(end)
        return WorkerRun(end=end, malformed=malformed, folder=self.folder)


async def _ready(worker: ChannelStreams, nonce: str) -> bool:
    """Wait until the worker is ready for its request. Return False where it ended or hangs."""
    try:
        record = await asyncio.wait_for(receive(worker[0]), _WARM_S)
    except (TimeoutError, MalformedRecord):
        return False
    return record is not None and record.get("nonce") == nonce


async def _reported(supervisor: ChannelStreams, within_s: float) -> dict[str, Any] | None:
    """Receive the supervisor's report on the worker's end; None where none comes in time."""
    try:
        return await asyncio.wait_for(receive(supervisor[0]), within_s)
    except (TimeoutError, MalformedRecord):
        return None


async def _listen(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, nonce: str, answer: RecordCallback
) -> str:
    """Pass records to `answer` until the channel ends. Return the fault in a malformed record, or ""."""
    while True:
        try:
            record = await receive(reader)
        except MalformedRecord as error:
            return str(error)
        if record is None:
            return ""
        if record.get("nonce") != nonce:
            return "a record came without the nonce of this evaluation"
        answered = answer(record)
        reply = answered if answered is None or isinstance(answered, dict) else await answered
        if reply is not None:
            writer.write(pack(reply))
