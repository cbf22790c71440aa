"""Records between the evaluator and the processes it starts: length-prefixed JSON over a Unix socket.

The worker's socket is opened before the candidate is imported, and every record the worker sends carries
a nonce that the evaluator drew for this one evaluation.  Printing a forged result therefore does nothing.
An adversary *inside* the process can still find the socket among the open file descriptors and the
nonce in memory (``exploits/cheats/inside_forgery.py`` does): this stops accidents and the simple cheats.  So
before a verdict counts for more than one round, `outside` has the values judged in a process that the
candidate is never in.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct(">I")
LONGEST_RECORD_BYTES = 64 << 20
"""A record longer than this is malformed: a profile of a large kernel is under one MiB."""


class MalformedRecord(ValueError):
    """What came over a channel is no record."""


def pack(record: dict[str, Any]) -> bytes:
    """One record as it travels. Raises MalformedRecord when it is too long."""
    body = json.dumps(record, allow_nan=False, separators=(",", ":")).encode()
    if len(body) > LONGEST_RECORD_BYTES:
        message = f"a record of {len(body)} bytes does not fit the limit of {LONGEST_RECORD_BYTES}"
        raise MalformedRecord(message)
    return _LENGTH.pack(len(body)) + body


def _parse(body: bytes) -> dict[str, Any]:
    try:
        record = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedRecord(f"{body[:80]!r} is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise MalformedRecord(f"expected an object, got {body[:80]!r}")
    return record


def _length(head: bytes) -> int:
    (length,) = _LENGTH.unpack(head)
    if length > LONGEST_RECORD_BYTES:
        raise MalformedRecord(f"a record announces {length} bytes, more than {LONGEST_RECORD_BYTES}")
    return int(length)


class Channel:
    """The blocking end, in the child."""

    def __init__(self, sock: socket.socket, nonce: str = "") -> None:
        self._sock = sock
        self._nonce = nonce

    def authenticate(self, nonce: str) -> None:
        """Carry `nonce` in every record from now on."""
        self._nonce = nonce

    def send(self, kind: str, **members: Any) -> None:
        """Send one record. Raises OSError when the evaluator has gone."""
        self._sock.sendall(pack({"kind": kind, "nonce": self._nonce, **members}))

    def receive(self) -> dict[str, Any] | None:
        """The next record, or None when the evaluator has gone. Raises MalformedRecord."""
        head = self._exactly(_LENGTH.size)
        if head is None:
            return None
        body = self._exactly(_length(head))
        return None if body is None else _parse(body)

    def _exactly(self, count: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < count:
            part = self._sock.recv(count - len(parts))
            if not part:
                return None
            parts += part
        return bytes(parts)


async def receive(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """The next record in the evaluator, or None at the end. Raises MalformedRecord."""
    try:
        head = await reader.readexactly(_LENGTH.size)
        body = await reader.readexactly(_length(head))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return _parse(body)
