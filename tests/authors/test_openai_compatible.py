"""Against a real HTTP server on loopback that speaks both APIs, and misbehaves when it is told to."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from email.utils import formatdate

import pytest

from cutegen_nb.authors.openai_compatible import OpenAICompatibleAuthor
from cutegen_nb.authors.server_profile import Api, Price, RequestLimits, ServerProfile, is_local
from cutegen_nb.core.errors import AuthorError, ConfigurationError, RateLimited, Refused, Unreachable
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.round import Prompt, Reply
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.prompting.parse import parse_reply
from cutegen_nb.prompting.reply_faults import MAX_REPLY_CHARACTERS, ReplyFault, Unusable
from cutegen_nb.testing import examples
from cutegen_nb.testing.model_server import Behaviour, Exchange, ModelServer, answers, refuses

KEY = "sk-secret-0123456789"
PROMPT = Prompt(system="be a kernel author", user="write", digest="d")
LIMITS = RequestLimits(first_byte_s=5.0, between_chunks_s=0.6, whole_s=20.0)
OPENING = "```python\nclass ModelNew"


@pytest.fixture(params=[Api.CHAT, Api.RESPONSES])
def api(request) -> Api:
    return request.param


@pytest.fixture
def serve() -> Iterator:
    with ExitStack() as stack:
        yield lambda *behaviours: stack.enter_context(ModelServer(behaviours))


def author(url: str, api: Api = Api.CHAT, key: str = KEY, **settings) -> OpenAICompatibleAuthor:
    profile = ServerProfile(name="openai", model="m", base_url=url, api=api, **{"limits": LIMITS, **settings})
    return OpenAICompatibleAuthor(profile, key=key, library=shipped_library(), first_wait_s=0.01)


def ask(url: str, api: Api = Api.CHAT, heard: list[str] | None = None, **settings) -> Reply:
    told = [] if heard is None else heard
    return asyncio.run(author(url, api, **settings).ask(PROMPT, told.append))


def fault(reply: Reply) -> ReplyFault:
    found = parse_reply(reply, None)
    assert isinstance(found, Unusable)
    return found.fault


def test_a_streamed_reply_is_collected_with_its_usage(serve, api):
    server = serve(answers("Rationale"))

    reply = ask(server.url, api)

    assert (reply.text, reply.finish_reason, reply.notes) == ("Rationale", "stop", ())
    usage = reply.usage
    assert (usage.input_tokens, usage.output_tokens) == (1000, 200)
    assert (usage.cached_tokens, usage.reasoning_tokens, usage.estimated) == (600, 50, False)
    assert server.keys == [f"Bearer {KEY}"]


def test_each_api_is_asked_in_its_own_form(serve):
    server = serve(answers("fine"))
    limits = dataclasses.replace(LIMITS, max_output_tokens=77)
    ask(server.url, Api.CHAT, limits=limits, temperature=0.5)
    ask(server.url, Api.RESPONSES, limits=limits, reasoning_effort="low")

    chat, response = server.requests
    assert server.paths == ["/v1/chat/completions", "/v1/responses"]
    assert chat["messages"] == [
        {"role": "system", "content": "be a kernel author"},
        {"role": "user", "content": "write"},
    ]
    assert (chat["max_tokens"], chat["temperature"]) == (77, 0.5)
    assert (response["instructions"], response["input"]) == ("be a kernel author", "write")
    assert (response["max_output_tokens"], response["reasoning"]) == (77, {"effort": "low"})
    assert response["store"] is False


def test_the_cost_follows_the_price_and_is_unknown_without_one(serve, api):
    url = serve(answers("fine")).url
    priced = ask(url, api, price=Price(input=2.0, output=10.0, cached=0.5)).usage
    assert priced.cost_usd == pytest.approx((400 * 2 + 600 * 0.5 + 200 * 10) / 1e6)
    assert ask(url, api, price=Price(input=2.0, output=10.0)).usage.cost_usd == pytest.approx(0.004)
    assert ask(url, api).usage.cost_usd is None


def test_a_server_that_counts_no_tokens_gets_a_guess_that_says_so(serve, api):
    usage = ask(serve(answers("x" * 400, usage=False)).url, api, price=Price(input=1.0, output=1.0)).usage
    assert (usage.estimated, usage.output_tokens, usage.input_tokens) == (True, 100, 5)
    assert usage.cost_usd == pytest.approx(105e-6)


def test_growth_of_the_reply_and_of_its_reasoning_is_told(serve, api):
    heard: list[str] = []
    ask(serve(answers("y" * 400, reasoning="x" * 500)).url, api, heard)
    assert heard == ["the model thinks: 500 characters", "the model writes: 400 characters"]
    assert [one.written for one in heard] == ["x" * 500, "y" * 400]


def test_the_end_of_a_long_reply_is_told_too(serve, api):
    heard: list[str] = []
    text = "y" * 400 + " the end"
    ask(serve(answers(text)).url, api, heard)
    assert heard[-1].written == text


def test_reasoning_is_kept_apart_in_each_form_servers_give_it(serve, api):
    apart = ask(serve(answers("fine", reasoning="let me think")).url, api)
    inside = ask(serve(answers("<think>let me\nthink</think>fine")).url, api)
    unopened = ask(serve(answers("let me think</think>fine")).url, api)
    channels = ask(
        serve(answers("<|channel|>analysis<|message|>let me<|end|><|channel|>final<|message|>fine")).url, api
    )
    for reply in (apart, inside, unopened, channels):
        assert reply.text == "fine"
        assert reply.reasoning.startswith("let me")


def test_a_reply_of_nothing_but_reasoning_is_told_apart(serve, api):
    reply = ask(serve(answers("", reasoning="hm " * 50, reason="length")).url, api)
    assert (reply.text, len(reply.reasoning)) == ("", 150)
    assert fault(reply) is ReplyFault.REASONING_ONLY


def test_a_reply_cut_by_its_length_says_so(serve, api):
    assert ask(serve(answers("half", reason="length")).url, api).finish_reason == "length"


def test_a_refusal_a_filter_prose_and_a_tool_call_are_told_apart(serve, api):
    def refusal(exchange: Exchange) -> None:
        exchange.begin()
        exchange.delta(refusal="I will not.")
        exchange.end()

    def call(exchange: Exchange) -> None:
        exchange.begin()
        exchange.call("write_file", '{"path": "kernel.py"}')
        exchange.end("tool_calls")

    assert fault(ask(serve(refusal).url, api)) is ReplyFault.REFUSED
    assert fault(ask(serve(answers("Some", reason="content_filter")).url, api)) is ReplyFault.REFUSED
    assert fault(ask(serve(answers("Use tiles.")).url, api)) is ReplyFault.PROSE
    called = ask(serve(call).url, api)
    assert "write_file" in called.text
    assert fault(called) is ReplyFault.TOOL_CALL


def ends_early(exchange: Exchange) -> None:
    exchange.begin()
    exchange.delta(OPENING)


def cut_mid_token(exchange: Exchange) -> None:
    exchange.begin_chunked()
    if exchange.responses:
        exchange.chunked(
            b'data: {"type": "response.output_text.delta", "delta": "```python\\nclass ModelNew"}\n\n'
        )
    else:
        exchange.chunked(
            b'data: {"choices": [{"index": 0, "delta": {"content": "```python\\nclass ModelNew"}}]}\n\n'
        )
    exchange.cut()


def stalls(exchange: Exchange) -> None:
    exchange.begin()
    exchange.delta(OPENING)
    exchange.hold(5.0)


def gives_up(exchange: Exchange) -> None:
    exchange.begin()
    exchange.delta(OPENING)
    if exchange.responses:
        exchange.end("failed", usage=False)
    else:
        exchange.event({"error": {"message": "out of memory", "code": 500}})


def turns_to_garbage(exchange: Exchange) -> None:
    exchange.begin()
    exchange.delta(OPENING)
    exchange.raw(b"data: \xff\xfe{not json\n\n")


BROKEN = [ends_early, cut_mid_token, stalls, gives_up, turns_to_garbage]


@pytest.mark.every(test=3)
@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_stream_is_asked_for_again_once_and_the_note_says_why(serve, api, broken):
    server = serve(broken, answers("fine"))
    reply = ask(server.url, api, price=Price(input=1.0, output=1.0))

    assert (reply.text, reply.finish_reason) == ("fine", "stop")
    assert len(server.requests) == 2
    assert len(reply.notes) == 1
    assert "asked again after" in reply.notes[0]
    assert reply.usage.output_tokens == 200 + len(OPENING) // 4, "what was lost was paid for too"
    assert reply.usage.estimated


@pytest.mark.every(test=3)
@pytest.mark.parametrize("broken", BROKEN)
def test_a_stream_that_always_breaks_keeps_its_text_and_counts_as_truncated(serve, api, broken):
    server = serve(broken)
    reply = ask(server.url, api, limits=dataclasses.replace(LIMITS, retries=1))

    assert reply.text == OPENING
    assert reply.finish_reason == "incomplete"
    assert len(server.requests) == 2
    assert fault(reply) is ReplyFault.TRUNCATED


def test_a_server_that_never_says_how_an_answer_ends_is_asked_twice_only_once(serve):
    server = serve(ends_early)
    made = author(server.url)

    async def twice() -> tuple[Reply, Reply]:
        return await made.ask(PROMPT, lambda _: None), await made.ask(PROMPT, lambda _: None)

    first, second = asyncio.run(twice())
    assert (first.text, second.text) == (OPENING, OPENING)
    assert len(server.requests) == 3


def test_a_server_that_does_not_stream_is_understood(serve, api):
    reply = ask(serve(lambda exchange: exchange.whole("fine")).url, api)
    assert (reply.text, reply.finish_reason) == ("fine", "stop")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (1000, 200)


@pytest.mark.every(test=3)
@pytest.mark.parametrize(
    ("code", "kind", "words", "requests"),
    [
        (400, AuthorError, "HTTP 400", 1),
        (401, Refused, "OPENAI_API_KEY", 1),
        (402, Refused, "no quota left", 1),
        (403, Refused, "OPENAI_API_KEY", 1),
        (404, Refused, "--model", 1),
        (418, Refused, "did not take the request", 1),
        (429, RateLimited, "wait", 3),
        (500, Unreachable, "HTTP 500", 3),
        (503, Unreachable, "3 times: run the same command again later", 3),
    ],
)
def test_each_refusal_of_the_server_is_one_sentence_without_the_key(  # noqa: PLR0913, PLR0917 - a table
    serve, api, code, kind, words, requests
):
    server = serve(refuses(code, f"no,\nnot with {KEY} or sk-proj-abc***xyz"))

    with pytest.raises(kind, match=words) as caught:
        ask(server.url, api, limits=dataclasses.replace(LIMITS, retries=2))

    said = str(caught.value)
    assert KEY not in said
    assert "sk-" not in said
    assert "Error code" not in said
    assert "\n" not in said
    assert caught.value.__cause__ is None
    assert len(server.requests) == requests


def test_a_busy_server_is_asked_again_and_the_notes_say_so(serve, api):
    server = serve(refuses(503, "loading"), refuses(429, "slow down"), answers("fine"))
    heard: list[str] = []
    reply = ask(server.url, api, heard)
    assert reply.text == "fine"
    assert [note.split(" (")[0].split()[-1] for note in reply.notes] == ["failed", "now"]
    assert "asking again in" in heard[0]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"Retry-After": "0.3"}, 0.3), ({"retry-after-ms": "700"}, 0.7), ({"Retry-After": "40"}, 40.0)],
)
def test_a_server_that_says_how_long_to_wait_is_heeded(serve, headers, seconds):
    server = serve(refuses(429, "slow down", headers=headers), answers("fine"))
    waits: list[float] = []

    async def sleep(wait: float) -> None:
        waits.append(wait)

    profile = ServerProfile(name="openai", model="m", base_url=server.url, api=Api.CHAT, limits=LIMITS)
    made = OpenAICompatibleAuthor(profile, key=KEY, library=shipped_library(), sleep=sleep)
    assert asyncio.run(made.ask(PROMPT, lambda _: None)).text == "fine"
    (wait,) = waits
    assert seconds <= wait <= 1.1 * seconds


@pytest.mark.parametrize("as_date", [False, True])
def test_a_server_that_asks_for_an_hour_is_not_waited_for(serve, as_date):
    value = formatdate(time.time() + 3600, usegmt=True) if as_date else "3600"
    server = serve(refuses(429, "come back later", headers={"Retry-After": value}))
    with pytest.raises(RateLimited, match=r"asks to wait 3[56]\d\d s"):
        ask(server.url)
    assert len(server.requests) == 1


def test_a_spent_quota_is_not_asked_again(serve, api):
    server = serve(refuses(429, "You exceeded your current quota", code="insufficient_quota"))
    with pytest.raises(Refused, match=r"no quota left .*add credit"):
        ask(server.url, api)
    assert len(server.requests) == 1


def test_an_unknown_model_is_answered_with_those_the_server_has(serve, api):
    server = serve(refuses(404, "The model `small-code` does not exist", code="model_not_found"))
    profile = ServerProfile(name="openai", model="small-code", base_url=server.url, api=api)
    made = OpenAICompatibleAuthor(profile, key=KEY, library=shipped_library())
    with pytest.raises(
        Refused, match=r"no model 'small-code' .*it has small-coder, large-coder, chatter; check --model"
    ):
        asyncio.run(made.ask(PROMPT, lambda _: None))


def test_a_wrong_api_for_a_model_that_is_there_is_told_from_an_unknown_model(serve):
    server = serve(refuses(404, "Not Found"))
    profile = ServerProfile(name="openai", model="chatter", base_url=server.url, api=Api.RESPONSES)
    made = OpenAICompatibleAuthor(profile, key=KEY, library=shipped_library())
    with pytest.raises(Refused, match='the model is there, so the address or api = "responses" is wrong'):
        asyncio.run(made.ask(PROMPT, lambda _: None))


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_server_that_is_not_there_is_unreachable(api):
    with pytest.raises(
        Unreachable, match=r"gave no answer .* 3 times: check that the server runs .*--base-url"
    ):
        ask(f"http://127.0.0.1:{closed_port()}/v1", api)


@pytest.mark.first(1)
def test_a_server_that_is_slow_to_begin_times_out(serve, api):
    server = serve(lambda exchange: exchange.hold(5.0))
    limits = dataclasses.replace(LIMITS, first_byte_s=0.4)
    with pytest.raises(Unreachable, match=r"sent nothing within 0.4 s 2 times: .*limits"):
        ask(server.url, api, limits=limits)
    assert server.disconnected.wait(30)


@pytest.mark.long
def test_an_answer_without_end_times_out_as_a_whole(serve, api):
    def drips(exchange: Exchange) -> None:
        exchange.begin()
        for _ in range(400):
            exchange.delta("x")
            exchange.hold(0.05)

    # Long enough for a first piece to arrive on a busy machine.
    limits = dataclasses.replace(LIMITS, whole_s=3.0, retries=0)
    reply = ask(serve(drips).url, api, limits=limits)
    assert reply.finish_reason == "incomplete"
    assert "did not end its answer within 3 s" in reply.notes[0]


@pytest.mark.every(test=3)
@pytest.mark.parametrize(
    "body", [b"<html>hello</html>", b"", b"data: [DONE]\n\n", b'data: {"choices": []}\n\n']
)
def test_an_answer_without_a_completion_is_one_sentence(serve, api, body):
    def respond(exchange: Exchange) -> None:
        exchange.begin()
        exchange.raw(body)

    kind = "a chat completion" if api is Api.CHAT else "a response"
    with pytest.raises(AuthorError, match=f"not with {kind} 2 times: check --base-url"):
        ask(serve(respond).url, api)


@pytest.mark.parametrize("line", [b"data: {not json\n\n", b"data: \xff\xfe\n\n"])
def test_events_that_are_no_json_are_an_author_error(serve, api, line):
    def respond(exchange: Exchange) -> None:
        exchange.begin()
        exchange.raw(line)

    with pytest.raises(AuthorError, match=r"not the API's .*--base-url"):
        ask(serve(respond).url, api)


def test_a_page_of_html_is_named_by_its_title(serve, api):
    page = b"<!DOCTYPE html><html><head><title>502 Bad\nGateway</title></head><body>x</body></html>"
    server = serve(lambda exchange: exchange.document(page, "text/html", 502))
    with pytest.raises(Unreachable, match=r"\(HTTP 502: an HTML page: 502 Bad Gateway\)"):
        ask(server.url, api)


def test_a_redirect_is_followed(serve, api):
    right = serve(answers("fine"))
    path = "/responses" if api is Api.RESPONSES else "/chat/completions"
    moved = serve(lambda exchange: exchange.document(b"", "text/plain", 308, {"Location": right.url + path}))
    assert ask(moved.url, api).text == "fine"


@pytest.mark.parametrize(
    "place", ["http://127.0.0.1:99999/x", "http://[::1/x", "ftp://x/y", "\x01", "", "/x"]
)
def test_a_redirect_to_nowhere_is_one_sentence(serve, place):
    server = serve(lambda exchange: exchange.document(b"", "text/plain", 308, {"Location": place}))
    with pytest.raises(Unreachable, match="gave no answer") as caught:
        ask(server.url, limits=dataclasses.replace(LIMITS, retries=0))
    assert "\n" not in str(caught.value)


ODD = [
    {}, [], 3, "x", None, {"choices": None}, {"choices": [{}]}, {"choices": [None]}, {"choices": {"a": 1}},
    {"choices": [{"delta": None, "finish_reason": 3}]}, {"choices": [{"delta": {"content": ["a"]}}]},
    {"choices": [{"delta": {"tool_calls": [None]}}]}, {"usage": {"prompt_tokens": "x"}}, {"usage": 3},
    {"type": "response.completed", "response": None}, {"type": "error"}, {"error": "x"},
    {"type": "response.completed", "response": {"status": "completed", "output": [None, {"content": [3]}]}},
    {"type": "response.output_text.delta", "delta": None}, {"type": "response.output_item.added", "item": None},
]  # fmt: skip


@pytest.mark.every(test=5)
@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_json_of_any_other_shape_is_a_reply_or_a_sentence(serve, api, odd):
    def streamed(exchange: Exchange) -> None:
        exchange.begin()
        exchange.raw(f"data: {json.dumps(odd)}\n\n".encode())

    for behaviour in (streamed, lambda exchange: exchange.json(odd)):
        with contextlib.suppress(AuthorError):
            assert isinstance(ask(serve(behaviour).url, api, limits=RequestLimits(retries=0)), Reply)


def test_an_endless_reply_is_cut_off_and_the_connection_closed(serve, api):
    def endless(exchange: Exchange) -> None:
        exchange.begin()
        while True:
            exchange.delta("x" * 50_000)

    server = serve(endless)
    reply = ask(server.url, api)
    assert len(reply.text) < MAX_REPLY_CHARACTERS + 200_000
    assert fault(reply) is ReplyFault.OVER_LONG
    assert server.disconnected.wait(30)


def picky(setting: str, message: str, **more: str) -> Behaviour:
    def respond(exchange: Exchange) -> None:
        if setting in exchange.body:
            refuses(400, message, **more)(exchange)
        else:
            answers("fine")(exchange) if "stream" in exchange.body else exchange.whole("fine")

    return respond


@pytest.mark.parametrize(
    ("refused", "message", "more"),
    [
        ("stream_options", "unknown field stream_options", {}),
        ("temperature", "Unsupported value: 'temperature' does not support 0.5", {"param": "temperature"}),
        ("max_tokens", "'max_tokens' is not supported, use 'max_completion_tokens'", {"param": "max_tokens"}),
        ("reasoning_effort", "Unrecognized request argument: reasoning_effort", {}),
        ("stream", "Your organization must be verified to stream this model.", {"param": "stream"}),
    ],
)
def test_a_setting_the_server_refuses_is_left_out_once_and_for_all(serve, refused, message, more):
    server = serve(picky(refused, message, **more))
    limits = dataclasses.replace(LIMITS, max_output_tokens=77)
    made = author(server.url, limits=limits, temperature=0.5, reasoning_effort="low")

    async def twice() -> tuple[Reply, Reply]:
        return await made.ask(PROMPT, lambda _: None), await made.ask(PROMPT, lambda _: None)

    first, second = asyncio.run(twice())
    assert first.text == second.text == "fine"
    assert refused in first.notes[0]
    assert second.notes == ()
    if refused == "max_tokens":
        assert server.requests[-1]["max_completion_tokens"] == 77


def test_a_model_without_a_system_role_gets_one_message(serve):
    def picky(exchange: Exchange) -> None:
        if exchange.body["messages"][0]["role"] == "system":
            refuses(400, "System role not supported")(exchange)
        else:
            answers("fine")(exchange)

    server = serve(picky)
    assert ask(server.url).text == "fine"
    assert server.requests[-1]["messages"] == [{"role": "user", "content": "be a kernel author\n\nwrite"}]


def test_a_missing_key_is_fine_for_a_local_server_and_an_error_elsewhere(serve):
    assert ask(serve(answers("fine")).url, key="").text == "fine"
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY is not set"):
        author("https://api.example.com/v1", key="")


def test_a_local_server_that_wants_a_key_says_which_variable(serve):
    with pytest.raises(Refused, match=r"asks for a key .*check OPENAI_API_KEY"):
        ask(serve(refuses(401, "no key")).url, key="")


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000", "http:///v1", "http://h:99999/v1", "http://h:abc/v1", "http://[::1/v1", "ftp://h/v1",
        "http://a b/v1", "http://a\nb/v1", "http://\u2603.invalid/v1", "http://h:0/v1", "http://h\0/v1",
        f"http://{'a' * 300}/v1",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_before_anything_is_asked(url):
    with pytest.raises(ConfigurationError, match="is not the address of a server: give http://HOST:PORT/v1"):
        author(url)


def test_a_missing_model_and_a_torn_key_are_one_sentence():
    profile = ServerProfile(name="openai", model="")
    with pytest.raises(ConfigurationError, match="CUTEGEN_MODEL"):
        OpenAICompatibleAuthor(profile, key=KEY, library=shipped_library())
    with pytest.raises(ConfigurationError, match="has a character no key has") as caught:
        author("https://api.example.com/v1", key=f"{KEY}\n")
    assert KEY not in str(caught.value)


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


def silent(exchange: Exchange) -> None:
    exchange.hold(10.0)


def silent_after_words(exchange: Exchange) -> None:
    exchange.begin()
    exchange.delta(OPENING)
    exchange.hold(10.0)


@pytest.mark.parametrize("behaviour", [silent, silent_after_words])
def test_cancelling_a_request_closes_the_connection(serve, api, behaviour):
    server = serve(behaviour)
    patient = dataclasses.replace(LIMITS, first_byte_s=10.0, between_chunks_s=10.0)

    async def start_and_cancel() -> None:
        task = asyncio.ensure_future(author(server.url, api, limits=patient).ask(PROMPT, lambda _: None))
        while not server.requests:  # noqa: ASYNC110 - the server is in another thread
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.disconnected.wait, 30), "the server still has the connection"

    asyncio.run(start_and_cancel())
    assert len(server.requests) == 1


def test_no_more_requests_are_on_their_way_than_the_limit_says(serve):
    def slow(exchange: Exchange) -> None:
        exchange.hold(0.1)
        answers("fine")(exchange)

    server = serve(slow)
    made = author(server.url, limits=dataclasses.replace(LIMITS, concurrency=2))

    async def many() -> list[Reply]:
        return await asyncio.gather(*(made.ask(PROMPT, lambda _: None) for _ in range(5)))

    assert [reply.text for reply in asyncio.run(many())] == ["fine"] * 5
    assert server.most_at_a_time == 2


def test_the_menu_is_the_library_for_the_class():
    names = [item.name for item in author("http://localhost/v1").menu(examples.relu_facts())]
    assert names[0] == "coalesced-access"
    assert names == [item.name for item in shipped_library().menu(WorkloadClass.ELEMENTWISE)]


def test_a_password_in_an_address_is_not_shown():
    url = f"http://user:pass-word@127.0.0.1:{closed_port()}/v1?token=pass-word"
    with pytest.raises(Unreachable, match="gave no answer") as caught:
        ask(url)
    assert "pass-word" not in str(caught.value)


def test_the_key_is_in_no_representation():
    made = author("http://localhost/v1")
    assert KEY not in repr(made)
    assert KEY not in str(made.name)
