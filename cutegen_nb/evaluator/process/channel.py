"""Records between the evaluator and its child processes: length-prefixed JSON over a Unix socket.

The worker's socket is opened before the candidate is imported. Every record from the worker carries a nonce
that the evaluator drew for this one evaluation, so printing a forged result does nothing.

The nonce stops accidents and simple cheats only. Code *inside* the process can find the socket among the open
file descriptors and the nonce in memory, as ``exploits/cheats/inside_forgery.py`` does. So before a verdict
counts for more than one round, `isolated.exchange` has the values judged in a process that the candidate
never enters.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

# Prefix of each record: length of its body in bytes, unsigned 32-bit big-endian.
_LENGTH = struct.Struct(">I")
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
"""Made ahead, so that a record can be sent even where a candidate has replaced ``json.dumps``."""
LONGEST_RECORD_BYTES = 64 << 20
"""Longest body of a record in bytes; a profile of a large kernel is under one MiB."""


class MalformedRecord(ValueError):
    """Error for channel data that is not a valid record."""


def pack(record: dict[str, Any]) -> bytes:
    """Serialise one record with its length prefix. Raises MalformedRecord when it is too long."""
    body = _ENCODER.encode(record).encode()
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
    """Blocking end of a channel, for use in a child process."""

    def __init__(self, sock: socket.socket, nonce: str = "") -> None:
        self._sock = sock
        self._nonce = nonce

    def authenticate(self, nonce: str) -> None:
        """Put `nonce` into every record sent from now on."""
        self._nonce = nonce

    def send(self, kind: str, **members: Any) -> None:
        """Send one record. Raises OSError when the evaluator has gone."""
        self._sock.sendall(pack({"kind": kind, "nonce": self._nonce, **members}))

    def receive(self) -> dict[str, Any] | None:
        """Receive the next record; None when the evaluator has gone. Raises MalformedRecord."""
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
    """Receive the next record in the evaluator; None at the end of the stream. Raises MalformedRecord."""
    try:
        head = await reader.readexactly(_LENGTH.size)
        body = await reader.readexactly(_length(head))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return _parse(body)
