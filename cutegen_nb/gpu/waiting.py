"""One worker from before its request to its end, as the evaluator holds it."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from cutegen_nb.gpu.channel import MalformedRecord, pack, receive
from cutegen_nb.gpu.warden import End

_GRACE_S = 15.0
"""After the deadline, for the warden to end a family and report."""
_WARM_S = 60.0
"""For a worker to say that it waits: several times what a CUDA context and a compilation take."""
Reply = dict[str, Any] | None
"""What is sent back to a worker; None for nothing."""
Answer = Callable[[dict[str, Any]], Reply | Awaitable[Reply]]
"""Given each record of the worker; what it returns, at once or awaited, is sent back."""
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
"""One channel."""


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
    """The warden's report; None when the warden itself was killed or stopped."""
    malformed: str = ""
    """What was wrong with a record of the worker; empty when nothing was."""
    folder: str = ""
    """What the worker left, in the template's scratch folder: for `discard`."""


class NeverBegan(Exception):
    """A worker ended before it had begun with its request, of which nothing was tried so."""

    def __init__(self, end: dict[str, Any] | None) -> None:
        super().__init__(end)
        self.end = end
        """The warden's report; None where none came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A worker that has no request yet, and its warden."""

    worker: socket.socket
    """Brings what the worker says; takes its request."""
    warden: socket.socket
    """Takes the limits, which start the clock. Its closing ends the worker."""
    nonce: str
    """In every record of this worker."""
    folder: str
    """The worker's own folder, in the template's scratch folder."""
    confine_files: bool
    """Whether it was kept from the person's files."""

    @property
    def lost(self) -> bool:
        """Whether it has ended: its warden says nothing else before the request."""
        readable, _, _ = select.select([self.warden], [], [], 0)
        return bool(readable)

    def close(self) -> None:
        """Let it go; its warden ends it."""
        self.warden.close()
        self.worker.close()

    async def carry_out(self, request: Callable[[], dict[str, Any]], limits: Limits, answer: Answer) -> Run:
        """Have it carry out what `request` gives once it is ready; `answer` hears its records.

        It and all it started are dead afterwards, and when the caller is cancelled. Raises NeverBegan.
        """
        worker = await asyncio.open_connection(sock=self.worker)
        warden = await asyncio.open_connection(sock=self.warden)
        try:
            if not await _ready(worker, self.nonce):
                raise NeverBegan(await _reported(warden, _GRACE_S))
            asked = request() | {
                "folder": self.folder,
                "address_space_bytes": limits.address_space_bytes,
            }
            return await self._conversed(worker, warden, asked, limits, answer)
        finally:
            # Its closing tells the warden to end the worker's whole family, if there still is one.
            warden[1].transport.abort()
            worker[1].transport.abort()

    async def _conversed(
        self, worker: Ends, warden: Ends, request: dict[str, Any], limits: Limits, answer: Answer
    ) -> Run:
        warden[1].write(pack({"deadline_s": limits.deadline_s, "resident_bytes": limits.resident_bytes}))
        worker[1].write(pack(request))
        begun = False

        def hear(record: dict[str, Any]) -> Reply | Awaitable[Reply]:
            nonlocal begun
            if begun:
                return answer(record)
            begun = True  # its first record says no more than that
            return None

        listening = asyncio.ensure_future(_listen(*worker, self.nonce, hear))
        try:
            end = await _reported(warden, limits.deadline_s + _GRACE_S)
            # The family is dead, so that the worker's channel is at its end.
            malformed = await asyncio.wait_for(listening, _GRACE_S)
        except TimeoutError:
            end, malformed = None, ""  # somebody still speaks, or is still answered: this is no clean end
        finally:
            listening.cancel()
        if not begun and not malformed and (end is None or end.get("how") in {End.SIGNALLED, End.EXITED}):
            # It says that it begins before it touches the candidate, which so had no part in this.
            raise NeverBegan(end)
        return Run(end=end, malformed=malformed, folder=self.folder)


async def _ready(worker: Ends, nonce: str) -> bool:
    """Wait until the worker is ready for its request; False where it ended instead, or hangs."""
    try:
        record = await asyncio.wait_for(receive(worker[0]), _WARM_S)
    except (TimeoutError, MalformedRecord):
        return False
    return record is not None and record.get("nonce") == nonce


async def _reported(warden: Ends, within_s: float) -> dict[str, Any] | None:
    """How the worker ended, as its warden tells; None where it does not tell in time."""
    try:
        return await asyncio.wait_for(receive(warden[0]), within_s)
    except (TimeoutError, MalformedRecord):
        return None


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
        answered = answer(record)
        reply = answered if answered is None or isinstance(answered, dict) else await answered
        if reply is not None:
            writer.write(pack(reply))
