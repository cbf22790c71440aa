"""HTTP server on loopback with both model APIs, for tests; it can also misbehave on request.

Each request takes the next `Behaviour` of the queue; the last one is repeated.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

MODELS = ("small-coder", "large-coder", "chatter")
"""Model names in the answer to ``GET /models``."""


class Exchange:
    """One request, with methods that answer it in its own API."""

    def __init__(self, handler: BaseHTTPRequestHandler, body: dict[str, Any], server: ModelServer) -> None:
        self.body = body
        self.server = server
        self.responses = handler.path.endswith("/responses")
        self._handler = handler

    def begin(self, content_type: str = "text/event-stream", headers: dict[str, str] | None = None) -> None:
        """Send status 200 and the headers of a stream that ends with the connection."""
        self._handler.send_response(200)
        self._handler.send_header("Content-Type", content_type)
        for name, value in (headers or {}).items():
            self._handler.send_header(name, value)
        self._handler.end_headers()

    def raw(self, data: bytes) -> None:
        """Send bytes unchanged."""
        self._handler.wfile.write(data)
        self._handler.wfile.flush()

    def event(self, data: dict[str, Any]) -> None:
        """Send one event of the stream."""
        named = f"event: {data['type']}\n" if "type" in data else ""
        self.raw(f"{named}data: {json.dumps(data)}\n\n".encode())

    def delta(self, text: str = "", *, reasoning: str = "", refusal: str = "") -> None:
        """Send more text, reasoning or refusal of the answer."""
        if self.responses:
            for kind, words in (
                ("response.output_text.delta", text),
                ("response.reasoning_summary_text.delta", reasoning),
                ("response.refusal.delta", refusal),
            ):
                if words:
                    self.event({"type": kind, "delta": words, "item_id": "i", "output_index": 0})
            return
        parts = {"content": text, "reasoning_content": reasoning, "refusal": refusal}
        self._chunk({"role": "assistant", **{name: words for name, words in parts.items() if words}})

    def call(self, name: str, arguments: str) -> None:
        """Send a tool call."""
        if self.responses:
            item = {"type": "function_call", "name": name, "arguments": "", "call_id": "c", "id": "i"}
            self.event({"type": "response.output_item.added", "output_index": 0, "item": item})
            self.event(
                {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": arguments}
            )
            return
        call = {"index": 0, "id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
        self._chunk({"tool_calls": [call]})

    def end(self, reason: str = "stop", *, usage: bool = True) -> None:
        """End the answer, with ``stop``, ``length``, ``content_filter``, ``tool_calls`` or ``failed``."""
        if self.responses:
            self._end_response(reason, usage=usage)
            return
        self._chunk({}, reason)
        if usage:
            self.event({**_CHUNK, "choices": [], "usage": CHAT_USAGE})
        self.raw(b"data: [DONE]\n\n")

    def _end_response(self, reason: str, *, usage: bool) -> None:
        status = {"stop": "completed", "tool_calls": "completed", "failed": "failed"}.get(
            reason, "incomplete"
        )
        response: dict[str, Any] = {"id": "r", "object": "response", "status": status, "output": []}
        if status == "incomplete":
            response["incomplete_details"] = {"reason": "max_output_tokens" if reason == "length" else reason}
        if status == "failed":
            response["error"] = {"code": "server_error", "message": "the machine caught fire"}
        if usage:
            response["usage"] = RESPONSE_USAGE
        self.event({"type": f"response.{status}", "response": response, "sequence_number": 9})

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> None:
        self.event({**_CHUNK, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    def whole(self, text: str, reason: str = "stop") -> None:
        """Send the answer in one piece."""
        if self.responses:
            content = [{"type": "output_text", "text": text, "annotations": []}]
            item = {
                "type": "message",
                "id": "i",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
            answer = {"id": "r", "object": "response", "status": "completed", "output": [item]}
            self.json({**answer, "usage": RESPONSE_USAGE})
            return
        choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": text}}
        self.json({"id": "1", "object": "chat.completion", "choices": [choice], "usage": CHAT_USAGE})

    def json(self, data: object, status: int = 200, headers: dict[str, str] | None = None) -> None:
        """Send a JSON document."""
        self.document(json.dumps(data).encode(), "application/json", status, headers)

    def document(
        self, data: bytes, content_type: str, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        """Send a document of any type."""
        self._handler.send_response(status)
        self._handler.send_header("Content-Type", content_type)
        self._handler.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self._handler.send_header(name, value)
        self._handler.end_headers()
        self._handler.wfile.write(data)

    def cut(self) -> None:
        """Close the connection in the middle of a chunk."""
        self.raw(b"ffff\r\ndata: {")
        self._handler.connection.shutdown(socket.SHUT_RDWR)

    def begin_chunked(self) -> None:
        """Begin a chunked stream, in which the client can see a missing end."""
        self.begin(headers={"Transfer-Encoding": "chunked"})

    def chunked(self, data: bytes) -> None:
        """Send one chunk of a chunked stream."""
        self.raw(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def hold(self, seconds: float) -> bool:
        """Stay silent for `seconds`; return True, and set `disconnected`, if the client went away before."""
        deadline = time.monotonic() + seconds
        connection = self._handler.connection
        connection.settimeout(0.02)
        while time.monotonic() < deadline and not self.server.closing.is_set():
            try:
                gone = connection.recv(1, socket.MSG_PEEK) == b""
            except TimeoutError:
                continue
            except OSError:
                gone = True
            if gone:
                self.server.disconnected.set()
                return True
        connection.settimeout(None)
        return False


Behaviour = Callable[[Exchange], None]
"""Function that answers one request."""
_CHUNK: dict[str, Any] = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
CHAT_USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 200,
    "total_tokens": 1200,
    "prompt_tokens_details": {"cached_tokens": 600},
    "completion_tokens_details": {"reasoning_tokens": 50},
}
"""Token counts of every chat completion."""
RESPONSE_USAGE = {
    "input_tokens": 1000,
    "output_tokens": 200,
    "total_tokens": 1200,
    "input_tokens_details": {"cached_tokens": 600},
    "output_tokens_details": {"reasoning_tokens": 50},
}
"""Token counts of every response."""


def answers(text: str, *, reasoning: str = "", reason: str = "stop", usage: bool = True) -> Behaviour:
    """Behaviour that streams a whole answer in pieces of 200 characters."""

    def respond(exchange: Exchange) -> None:
        exchange.begin()
        if reasoning:
            exchange.delta(reasoning=reasoning)
        for start in range(0, len(text), 200):
            exchange.delta(text[start : start + 200])
        exchange.end(reason, usage=usage)

    return respond


def refuses(
    status: int, message: str = "no", *, headers: dict[str, str] | None = None, **more: str
) -> Behaviour:
    """Behaviour that answers with an error status and a sentence; `more` are members of the error."""

    def respond(exchange: Exchange) -> None:
        error = {"message": message, "type": "error", **more}
        exchange.json({"error": error}, status, headers)

    return respond


@dataclass
class ModelServer:
    """Server that runs inside its ``with`` block."""

    behaviours: Iterable[Behaviour]
    """Behaviours for the requests, in order."""
    url: str = ""
    """Address of the API, with ``/v1``."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of the requests."""
    keys: list[str] = field(default_factory=list)
    """Authorization headers of the requests."""
    paths: list[str] = field(default_factory=list)
    """Paths of the requests."""
    disconnected: threading.Event = field(default_factory=threading.Event)
    """Set when a client went away while the server was silent."""
    closing: threading.Event = field(default_factory=threading.Event)
    """Set when the server ends."""
    most_at_a_time: int = 0
    """Largest number of concurrent requests so far."""

    def __post_init__(self) -> None:
        self._queue = list(self.behaviours)
        self._now = 0
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handlers())
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def then(self, *behaviours: Behaviour) -> None:
        """Replace the queue of behaviours."""
        with self._lock:
            self._queue = list(behaviours)

    def __enter__(self) -> Self:
        run = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        run.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()

    def _next(self) -> Behaviour:
        return self._queue.pop(0) if len(self._queue) > 1 else self._queue[0]

    def _handlers(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server._lock:
                    server.requests.append(body)
                    server.keys.append(self.headers.get("Authorization", ""))
                    server.paths.append(self.path)
                    behaviour = server._next()
                    server._now += 1
                    server.most_at_a_time = max(server.most_at_a_time, server._now)
                try:
                    behaviour(Exchange(self, body, server))
                except OSError:
                    server.disconnected.set()
                finally:
                    with server._lock:
                        server._now -= 1

            def do_GET(self) -> None:
                server.paths.append(self.path)
                listed = [{"id": name, "object": "model", "created": 1, "owned_by": "x"} for name in MODELS]
                Exchange(self, {}, server).json({"object": "list", "data": listed})

            def log_message(self, *arguments: object) -> None:
                pass

        return Handler
