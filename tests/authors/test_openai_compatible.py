"""Against a real HTTP server on loopback that speaks the API, and misbehaves when it is told to."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cutegen_nb.authors.openai_compatible import OpenAICompatibleAuthor, is_local
from cutegen_nb.core.errors import AuthorError, ConfigurationError, RateLimited, Unreachable
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.round import Prompt, Reply
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.prompting.parse import ReplyFault, Unusable, parse_reply
from cutegen_nb.testing import examples

KEY = "sk-secret-0123456789"


@dataclass
class Server:
    url: str
    requests: list[dict[str, object]] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)


def chunk(content: str | None = None, *, finish: str | None = None, refusal: str | None = None) -> bytes:
    delta = {"role": "assistant", "content": content, "refusal": refusal}
    event = {
        "id": "1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return f"data: {json.dumps(event)}\n\n".encode()


USAGE = (
    b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],'
    b'"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}\n\n'
)
DONE = b"data: [DONE]\n\n"


def events(*parts: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        for part in parts:
            handler.wfile.write(part)
            handler.wfile.flush()

    return respond


def status(code: int, message: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        body = json.dumps({"error": {"message": message, "type": "x", "code": "y"}}).encode()
        handler.send_response(code)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return respond


def cut_mid_chunk(handler: BaseHTTPRequestHandler) -> None:
    """A chunked body that promises more than it sends."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    body = chunk("```python\nclass ModelNew")
    handler.wfile.write(f"{len(body):x}\r\n".encode() + body + b"\r\nffff\r\ndata: {")
    handler.wfile.flush()
    handler.connection.close()


@pytest.fixture
def serve():
    running: list[ThreadingHTTPServer] = []

    def start(respond: Callable[[BaseHTTPRequestHandler], None]) -> Server:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                server.requests.append(json.loads(self.rfile.read(length)))
                server.headers.append(self.headers.get("Authorization", ""))
                respond(self)

            def log_message(self, *arguments: object) -> None:
                pass

        http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        running.append(http)
        threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        server = Server(f"http://127.0.0.1:{http.server_port}/v1")
        return server

    yield start
    for http in running:
        http.shutdown()
        http.server_close()


def author(url: str, key: str = KEY, timeout_s: float = 5.0) -> OpenAICompatibleAuthor:
    return OpenAICompatibleAuthor(
        model="m", key=key, base_url=url, library=shipped_library(), timeout_s=timeout_s, retries=0
    )


def session() -> Session:
    return Session(
        name="relu",
        problem=examples.relu_problem(),
        facts=examples.relu_facts(),
        device=examples.simulated_device(),
        author="openai:m",
        budget=Budget(),
        created_at="2026-01-01T00:00:00+00:00",
    )


def ask(url: str, **settings: object) -> Reply:
    prompt = Prompt(system="be a kernel author", user="write", digest="d")
    return asyncio.run(author(url, **settings).write(prompt, session(), heard.append))


heard: list[str] = []


def test_a_streamed_reply_is_collected_with_its_usage(serve):
    server = serve(events(chunk("Ratio"), chunk("nale"), chunk(finish="stop"), USAGE, DONE))

    reply = ask(server.url)

    assert (reply.text, reply.finish_reason) == ("Rationale", "stop")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (11, 7)
    assert server.requests[0]["messages"] == [
        {"role": "system", "content": "be a kernel author"},
        {"role": "user", "content": "write"},
    ]
    assert server.headers == [f"Bearer {KEY}"]


def test_growth_of_the_reply_is_told(serve):
    heard.clear()
    ask(serve(events(chunk("x" * 500), chunk("y" * 500), chunk(finish="stop"), DONE)).url)
    assert heard == ["the model writes: 500 characters", "the model writes: 1,000 characters"]


def test_a_reply_cut_by_its_length_says_so(serve):
    assert ask(serve(events(chunk("half"), chunk(finish="length"), DONE)).url).finish_reason == "length"


@pytest.mark.parametrize("respond", [events(chunk("```python\nclass ModelNew")), cut_mid_chunk])
def test_a_stream_that_breaks_keeps_its_text_and_counts_as_truncated(serve, respond):
    reply = ask(serve(respond).url)

    assert reply.text == "```python\nclass ModelNew"
    assert reply.finish_reason == "incomplete"
    found = parse_reply(reply, None)
    assert isinstance(found, Unusable)
    assert found.fault is ReplyFault.TRUNCATED


def test_a_refusal_is_told_apart(serve):
    reply = ask(serve(events(chunk(refusal="I will not."), chunk(finish="stop"), DONE)).url)
    found = parse_reply(reply, None)
    assert isinstance(found, Unusable)
    assert found.fault is ReplyFault.REFUSED


def test_a_filtered_reply_is_told_apart(serve):
    reply = ask(serve(events(chunk("Some"), chunk(finish="content_filter"), DONE)).url)
    assert parse_reply(reply, None).fault is ReplyFault.REFUSED


def test_prose_is_a_reply_without_code(serve):
    reply = ask(serve(events(chunk("Use tiles."), chunk(finish="stop"), DONE)).url)
    assert parse_reply(reply, None).fault is ReplyFault.PROSE


def whole(handler: BaseHTTPRequestHandler) -> None:
    """An answer in one piece, whatever was asked for."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "fine"}}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    answer = {
        "id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice],
        "usage": usage,
    }  # fmt: skip
    body = json.dumps(answer).encode()
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def test_a_server_that_does_not_stream_is_understood(serve):
    reply = ask(serve(whole).url)
    assert (reply.text, reply.finish_reason) == ("fine", "stop")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (11, 7)


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (400, AuthorError, "HTTP 400"),
        (401, ConfigurationError, "OPENAI_API_KEY"),
        (403, ConfigurationError, "OPENAI_API_KEY"),
        (404, ConfigurationError, "--model"),
        (429, RateLimited, "wait"),
        (500, Unreachable, "HTTP 500"),
        (503, Unreachable, "HTTP 503"),
    ],
)
def test_each_refusal_of_the_server_is_one_sentence_without_the_key(serve, code, kind, words):
    server = serve(status(code, f"no,\nnot with {KEY}"))

    with pytest.raises(kind, match=words) as caught:
        ask(server.url)

    assert KEY not in str(caught.value)
    assert "Error code" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_server_that_is_not_there_is_unreachable(serve):
    server = serve(events(DONE))
    port = int(server.url.rsplit(":", 1)[1].split("/")[0])
    with pytest.raises(Unreachable, match="--base-url"):
        ask(f"http://127.0.0.1:{port - 1 if port > 2000 else port + 1}/v1", timeout_s=1.0)


def test_a_stalled_server_times_out(serve):
    release = threading.Event()

    def stall(handler: BaseHTTPRequestHandler) -> None:
        release.wait(5)

    server = serve(stall)
    try:
        with pytest.raises(Unreachable):
            ask(server.url, timeout_s=0.3)
    finally:
        release.set()


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"", DONE])
def test_an_answer_without_a_completion_is_one_sentence(serve, body):
    with pytest.raises(AuthorError, match="not with a chat completion: check --base-url"):
        ask(serve(events(body)).url)


def test_events_that_are_no_json_are_an_author_error(serve):
    with pytest.raises(Unreachable, match="--base-url"):
        ask(serve(events(b"data: {not json\n\n")).url)


def test_a_server_that_refuses_usage_is_asked_without(serve):
    def picky(handler: BaseHTTPRequestHandler) -> None:
        if "stream_options" in server.requests[-1]:
            status(400, "unknown field stream_options")(handler)
        else:
            events(chunk("fine"), chunk(finish="stop"), DONE)(handler)

    server = serve(picky)
    assert ask(server.url).text == "fine"
    assert len(server.requests) == 2


def test_a_missing_key_is_fine_for_a_local_server_and_an_error_elsewhere(serve):
    server = serve(events(chunk("fine"), chunk(finish="stop"), DONE))
    assert ask(server.url, key="").text == "fine"
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY is not set"):
        author("https://api.example.com/v1", key="")


def test_a_missing_model_and_a_strange_address_are_one_sentence():
    with pytest.raises(ConfigurationError, match="CUTEGEN_MODEL"):
        OpenAICompatibleAuthor(model="", key=KEY, library=shipped_library())
    with pytest.raises(ConfigurationError, match="http://HOST"):
        author("localhost:8000")


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:11434/v1", True),
        ("http://127.0.0.1/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://10.1.2.3/v1", True),
        ("http://gpu-box:8000/v1", True),
        ("https://api.openai.com/v1", False),
        ("https://8.8.8.8/v1", False),
    ],
)
def test_local_addresses_are_known(url, local):
    assert is_local(url) is local


def test_cancelling_a_request_closes_the_connection(serve):
    closed = threading.Event()

    def endless(handler: BaseHTTPRequestHandler) -> None:
        try:
            for _ in range(1000):
                events(chunk("x" * 1000))(handler)
                closed.wait(0.01)
        except OSError:
            closed.set()

    url = serve(endless).url

    async def start_and_cancel() -> None:
        prompt = Prompt(system="", user="", digest="")
        task = asyncio.ensure_future(author(url).write(prompt, session(), lambda text: None))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(start_and_cancel())
    assert closed.wait(3)


def test_the_menu_is_the_library_for_the_class():
    names = [item.name for item in author("http://localhost/v1").menu(examples.relu_facts())]
    assert names[0] == "coalesced-access"
    assert names == [item.name for item in shipped_library().menu(WorkloadClass.ELEMENTWISE)]


def test_the_key_is_in_no_representation():
    made = author("http://localhost/v1")
    assert KEY not in repr(made)
    assert KEY not in str(made.name)
