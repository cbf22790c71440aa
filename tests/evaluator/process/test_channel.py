"""Records between processes: whole ones come as they were sent, everything else is malformed or the end."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from cutegen_nb.evaluator.process import channel as channels
from cutegen_nb.evaluator.process.channel import Channel, MalformedRecord, pack, receive


@pytest.fixture
def ends():
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def read(data):
    """Read these bytes at the evaluator's end."""

    async def run():
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return await receive(reader)

    return asyncio.run(run())


def body(data):
    return struct.pack(">I", len(data)) + data


def test_records_come_in_order_with_the_nonce_of_their_sender(ends):
    worker = Channel(ends[0])
    worker.send("ready")
    worker.authenticate("secret")
    worker.send("stage", text="ä\nb")
    other = Channel(ends[1])
    assert other.receive() == {"kind": "ready", "nonce": ""}
    assert other.receive() == {"kind": "stage", "nonce": "secret", "text": "ä\nb"}
    ends[0].close()
    assert other.receive() is None


def test_a_record_that_was_cut_is_the_end_on_both_sides(ends):
    whole = pack({"kind": "result"})
    for length in range(len(whole)):
        assert read(whole[:length]) is None
    ends[0].sendall(whole[:-1])
    ends[0].close()
    assert Channel(ends[1]).receive() is None


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (body(b"{"), "is not JSON"),
        (body(b"\xff\xfe"), "is not JSON"),
        (body(b"[1]"), "expected an object"),
        (
            struct.pack(">I", channels.LONGEST_RECORD_BYTES + 1),
            "announces 67108865 bytes, more than 67108864",
        ),
    ],
)
def test_other_bytes_are_malformed_on_both_sides(ends, data, words):
    with pytest.raises(MalformedRecord, match=words):
        read(data)
    ends[0].sendall(data)
    with pytest.raises(MalformedRecord, match=words):
        Channel(ends[1]).receive()


def test_what_no_record_can_hold_is_refused_by_its_sender(monkeypatch):
    monkeypatch.setattr(channels, "LONGEST_RECORD_BYTES", 100)
    with pytest.raises(MalformedRecord, match="does not fit the limit of 100"):
        pack({"text": "x" * 100})
    with pytest.raises(ValueError, match="not JSON compliant"):
        pack({"value": float("nan")})
