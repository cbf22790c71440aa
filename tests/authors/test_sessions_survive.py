"""Whole sessions (loop, store, real HTTP) with a model server that misbehaves in one round of them.

A session is: a first kernel; a round in which the server misbehaves; a better kernel. What the server does
either costs repeated requests only, or one attempt that the author repairs, or ends the session with a
sentence, after which the same command goes on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from cutegen_nb.app.output import session_json
from cutegen_nb.authors.openai_compatible import OpenAICompatibleAuthor
from cutegen_nb.authors.server_profile import Api, Price, RequestLimits, ServerProfile
from cutegen_nb.core.candidate import source_digest
from cutegen_nb.core.evaluation import NotJudged, NotJudgedReason
from cutegen_nb.core.round import Prompt, Round, StrategyEnd
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.loop.session import open_session, run_session
from cutegen_nb.notebook.view import Live, detail
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.prompting.reply_faults import MAX_REPLY_CHARACTERS, ReplyFault
from cutegen_nb.report.html.session_page import write_report
from cutegen_nb.report.terminal.session import table as text_of
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples
from cutegen_nb.testing.clock import FixedClock
from cutegen_nb.testing.model_server import Behaviour, Exchange, ModelServer, answers, refuses
from cutegen_nb.testing.scripted import RecordedEvaluator

LIMITS = RequestLimits(first_byte_s=0.5, between_chunks_s=0.5, whole_s=20.0, retries=3)


def source(mark: str) -> str:
    return f"# {mark}\nclass ModelNew:\n    pass\n\n\ndef a():\n    return 1\n\n\ndef b():\n    return 1\n"


def file_of(mark: str) -> str:
    return f"Rationale: {mark}.\nPredicted effect: gmem_sectors down 50 %\n```python\n{source(mark)}```\n"


def edit_of(search: str, replacement: str) -> str:
    return f"Rationale: x.\n<<<<<<< SEARCH\n{search}=======\n{replacement}>>>>>>> REPLACE\n"


FIRST, BETTER = file_of("first"), edit_of("# first\n", "# better\n")


@dataclass
class Bench:
    """A session in a store of its own, with recorded evaluations."""

    store: SqliteStore
    url: str
    api: Api = Api.CHAT

    def run(self, rounds: int) -> Session:
        profile = ServerProfile(
            name="openai", model="m", base_url=self.url, api=self.api, limits=LIMITS,
            price=Price(input=1.0, output=2.0), temperature=0.2,
        )  # fmt: skip
        author = OpenAICompatibleAuthor(profile, key="k", library=shipped_library(), first_wait_s=0.01)
        found = {
            source_digest(source("first")): examples.passed(1000),
            source_digest(source("better")): examples.passed(500),
        }
        effects = Effects(
            author=author,
            evaluator=RecordedEvaluator(examples.relu_facts(), examples.simulated_device(), found),
            approver=AutoApprover(),
            clock=FixedClock(step_s=1.0),
            library=shipped_library(),
            progress=lambda _: None,
        )

        async def play() -> Session:
            session = await open_session(examples.relu_problem(), effects, self.store, Budget(rounds=rounds))
            return await run_session(session, effects, self.store, repairs=0)

        return asyncio.run(play())


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """The client imports its types at the first request: a second that is not the server's."""
    with ModelServer([answers("x")]) as server:
        for api in Api:
            profile = ServerProfile(name="openai", model="m", base_url=server.url, api=api)
            author = OpenAICompatibleAuthor(profile, key="k", library=shipped_library())
            asyncio.run(author.ask(Prompt(system="", user="", digest=""), lambda _: None))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    with closing(SqliteStore(tmp_path / ".cutegen")) as store:
        yield lambda url, api=Api.CHAT: Bench(store, url, api)


def whole_and_well(session: Session, bench: Bench) -> None:
    """Nothing is lost, and the better kernel stands on the first one."""
    assert bench.store.load("relu").rounds == session.rounds
    assert [item.number for item in session.rounds] == list(range(len(session.rounds)))
    first, last = session.rounds[0], session.rounds[-1]
    assert first.candidate.source == source("first")
    assert last.candidate.source == source("better")
    assert last.candidate.parents == (first.candidate.digest,)
    assert session.best == last


def slow_to_begin(exchange: Exchange) -> None:
    exchange.hold(3.0)


def stalls(exchange: Exchange) -> None:
    exchange.begin()
    exchange.delta(FIRST[:60])
    exchange.hold(3.0)


def cut_mid_token(exchange: Exchange) -> None:
    exchange.begin_chunked()
    kind = (
        b'{"type": "response.output_text.delta", "delta": "```python\\nclass Mod"}'
        if exchange.responses
        else b'{"choices": [{"index": 0, "delta": {"content": "```python\\nclass Mod"}}]}'
    )
    exchange.chunked(b"data: " + kind + b"\n\n")
    exchange.cut()


def closes_at_once(exchange: Exchange) -> None:
    exchange._handler.close_connection = True


def raw_stream(data: bytes) -> Behaviour:
    def respond(exchange: Exchange) -> None:
        exchange.begin()
        exchange.raw(data)

    return respond


def gives_up(exchange: Exchange) -> None:
    exchange.begin()
    exchange.delta(FIRST[:60])
    exchange.end("failed") if exchange.responses else exchange.event({"error": {"message": "out of memory"}})


def garbage_after_words(exchange: Exchange) -> None:
    exchange.begin()
    exchange.delta(FIRST[:60])
    exchange.raw(b"data: \xff\xfe\n\n")


def page(status: int) -> Behaviour:
    html = b"<html><head><title>Sign in</title></head><body>please</body></html>"
    return lambda exchange: exchange.document(html, "text/html", status)


PASSING = {
    "429 without Retry-After": (refuses(429, "slow down"), "HTTP 429: slow down"),
    "429 with Retry-After": (refuses(429, "slow", headers={"Retry-After": "0.05"}), "asks to wait 0 s"),
    "408": (refuses(408, "late"), "HTTP 408"),
    "409": (refuses(409, "busy"), "HTTP 409"),
    "500": (refuses(500, "oops"), "HTTP 500: oops"),
    "502 with a page": (page(502), "an HTML page: Sign in"),
    "503": (refuses(503, "loading"), "HTTP 503: loading"),
    "529": (refuses(529, "overloaded"), "HTTP 529: overloaded"),
    "slow first byte": (slow_to_begin, "sent nothing within 0.5 s"),
    "stall mid-stream": (stalls, "fell silent for 0.5 s"),
    "cut mid-token": (cut_mid_token, "asked again"),
    "connection closed at once": (closes_at_once, "gave no answer"),
    "invalid JSON": (raw_stream(b"data: {not json\n\n"), "not the API's"),
    "not UTF-8": (raw_stream(b"data: \xff\xfe\xfa\n\n"), "not the API's"),
    "garbage after words": (garbage_after_words, "asked again"),
    "error in mid-stream": (gives_up, "asked again"),
    "stream without a word": (raw_stream(b""), "not with"),
}
"""What costs a repeated request, and what its note says."""


@pytest.mark.every(test=5)
@pytest.mark.parametrize("api", list(Api))
@pytest.mark.parametrize("name", PASSING)
def test_a_passing_trouble_costs_a_request_and_no_round(bench, name, api):
    trouble, words = PASSING[name]
    # A stream without a word is asked for in one piece as well before it counts as trouble.
    twice = [trouble, trouble] if name == "stream without a word" else [trouble]
    with ModelServer([answers(FIRST), *twice, answers(BETTER)]) as server:
        made = bench(server.url, api)
        session = made.run(2)

    whole_and_well(session, made)
    assert len(session.rounds) == 2
    reply = session.rounds[1].attempts[0].reply
    assert any(words in note for note in reply.notes), reply.notes


def lasting(name: str) -> Behaviour:
    return {
        "400": refuses(400, "prompt is too long for this model"),
        "401": refuses(401, "bad key"),
        "402": refuses(402, "pay first"),
        "403": refuses(403, "not for you"),
        "404": refuses(404, "no such model"),
        "418": refuses(418, "a teapot"),
        "429 for an hour": refuses(429, "come back", headers={"Retry-After": "3600"}),
        "429 for the quota": refuses(429, "quota", code="insufficient_quota"),
        "503 for good": refuses(503, "down"),
        "a page of HTML": page(200),
        "empty choices": raw_stream(b'data: {"choices": []}\n\ndata: [DONE]\n\n'),
        "slow for good": slow_to_begin,
        "redirect in a circle": lambda exchange: exchange.document(
            b"", "text/plain", 308, {"Location": f"{exchange.server.url}{exchange._handler.path[3:]}"}
        ),
    }[name]


LASTING = {
    "400": "did not take the request (HTTP 400: prompt is too long for this model): try another --model",
    "401": "refused the key (HTTP 401: bad key): check OPENAI_API_KEY in the environment",
    "402": "has no quota left (HTTP 402: pay first): add credit there",
    "403": "refused the key (HTTP 403: not for you): check OPENAI_API_KEY",
    "404": "has no model 'm' or no chat API there (HTTP 404: no such model): it has small-coder,",
    "418": "did not take the request (HTTP 418: a teapot)",
    "429 for an hour": "asks to wait 3600 s: wait, then run the same command again",
    "429 for the quota": "no quota left",
    "503 for good": "failed (HTTP 503: down) 4 times: run the same command again later",
    "a page of HTML": "answered, but not with a chat completion 2 times: check --base-url",
    "empty choices": "answered, but not with a chat completion 2 times: check --base-url",
    "slow for good": "sent nothing within 0.5 s 2 times",
    "redirect in a circle": "",
}
"""What ends a session, and its sentence."""


@pytest.mark.every(test=3)
@pytest.mark.parametrize("name", LASTING)
def test_a_lasting_trouble_ends_the_session_in_a_sentence_and_the_same_command_goes_on(bench, name):
    with ModelServer([answers(FIRST), lasting(name)]) as server:
        made = bench(server.url)
        stopped = made.run(2)
        server.then(answers(BETTER))
        session = made.run(2)

    assert [item.candidate is not None for item in stopped.rounds] == [True, False]
    failed = stopped.rounds[1]
    assert LASTING[name] in failed.note
    assert stopped.stopped == failed.note == failed.attempts[0].problem
    assert "\n" not in failed.note
    assert session.rounds[:2] == stopped.rounds
    assert len(session.rounds) == 3, "a round without a reply is not paid from the budget"
    whole_and_well(session, made)


def test_a_server_that_is_gone_ends_the_session_and_another_goes_on(bench):
    with ModelServer([answers(FIRST)]) as server:
        assert len(bench(server.url).run(1).rounds) == 1
    stopped = bench(server.url).run(2)
    assert "gave no answer" in stopped.stopped
    with ModelServer([answers(BETTER)]) as server:
        made = bench(server.url)
        whole_and_well(made.run(2), made)


def refusal(exchange: Exchange) -> None:
    exchange.begin()
    exchange.delta(refusal="I will not.")
    exchange.end()


def call(exchange: Exchange) -> None:
    exchange.begin()
    exchange.call("write_file", '{"path": "kernel.py"}')
    exchange.end("tool_calls")


def huge(exchange: Exchange) -> None:
    exchange.begin()
    for _ in range(12):
        exchange.delta("x" * (MAX_REPLY_CHARACTERS // 10))
    exchange.end()


def fenced(text: str) -> str:
    return f"```python\n{text}```\n"


UNUSABLE = {
    "length stop": (answers("```python\nclass ModelNew(", reason="length"), ReplyFault.TRUNCATED),
    "refusal": (refusal, ReplyFault.REFUSED),
    "refusal in words": (answers("I'm sorry, I can't help with that."), ReplyFault.REFUSED),
    "content filter": (answers("It", reason="content_filter"), ReplyFault.REFUSED),
    "prose": (answers("One could tile the rows."), ReplyFault.PROSE),
    "empty": (answers(""), ReplyFault.EMPTY),
    "blank": (answers(" \n\n"), ReplyFault.EMPTY),
    "reasoning only": (answers("", reasoning="hm " * 40), ReplyFault.REASONING_ONLY),
    "reasoning until the limit": (answers("<think>hm", reason="length"), ReplyFault.REASONING_ONLY),
    "two code blocks": (answers(fenced(source("a")) + fenced(source("b"))), ReplyFault.SEVERAL_FILES),
    "code without ModelNew": (answers(fenced("x = 1\n")), ReplyFault.NO_MODEL_NEW),
    "edit that matches twice": (
        answers(edit_of("    return 1\n", "    return 2\n")),
        ReplyFault.EDIT_MISMATCH,
    ),
    "edit that matches nowhere": (answers(edit_of("def c():\n", "")), ReplyFault.EDIT_MISMATCH),
    "edit without an end": (answers("<<<<<<< SEARCH\n# first\n=======\n"), ReplyFault.EDIT_MISMATCH),
    "huge reply": (huge, ReplyFault.OVER_LONG),
    "NUL": (answers(fenced(source("a\0"))), ReplyFault.UNREADABLE),
    "escape sequences": (answers(fenced(source("\x1b[2J"))), ReplyFault.UNREADABLE),
    "reversed text": (answers(fenced(source("\u202e"))), ReplyFault.UNREADABLE),
    "half a surrogate pair": (answers(fenced(source("\ud83d"))), ReplyFault.UNREADABLE),
    "tool call": (call, ReplyFault.TOOL_CALL),
    "tool call in words": (answers('{"name": "write", "arguments": {}}'), ReplyFault.TOOL_CALL),
}
"""What is no proposal, and what it counts as."""


def quoted_part(text: str) -> str:
    """A piece of an answer that its quotation in the next request keeps."""
    return text.encode(errors="replace").decode().strip()[:40]


def unusable_first(item: Round, fault: ReplyFault) -> None:
    first, second = item.attempts
    assert first.reply is not None
    assert isinstance(first.evaluation.outcome, NotJudged)
    assert first.evaluation.outcome.reason is NotJudgedReason.REPLY_UNUSABLE
    assert first.evaluation.summary == f"{fault.value}: {first.problem}"
    asked_again = second.prompt.user
    assert asked_again.startswith("# Your last answer could not be used\n")
    assert first.problem.strip() in asked_again, "the author is told why"
    assert quoted_part(first.reply.text) in asked_again, "the author is shown its answer"
    assert asked_again.endswith(first.prompt.user.rstrip() + "\n"), "the request is repeated"
    assert ("It was:" in asked_again) is bool(first.reply.text.strip())
    assert second.purpose == "reply"
    assert second.candidate is not None


@pytest.mark.every(test=6)
@pytest.mark.parametrize("name", UNUSABLE)
@pytest.mark.parametrize("api", list(Api))
def test_a_reply_that_cannot_be_used_is_recorded_and_asked_for_once_more(bench, name, api):
    trouble, fault = UNUSABLE[name]
    with ModelServer([answers(FIRST), trouble, answers(BETTER)]) as server:
        made = bench(server.url, api)
        session = made.run(2)

    whole_and_well(session, made)
    unusable_first(session.rounds[1], fault)
    assert len(server.requests) == 3


@pytest.mark.first(1)
@pytest.mark.parametrize("name", ["prose", "two code blocks", "huge reply", "NUL"])
def test_a_model_that_answers_so_every_time_costs_its_rounds_and_nothing_else(bench, name):
    trouble, fault = UNUSABLE[name]
    # Each of the two rounds makes its request and repeats it twice.
    with ModelServer([answers(FIRST), *[trouble] * 6, answers(BETTER)]) as server:
        made = bench(server.url)
        session = made.run(4)

    whole_and_well(session, made)
    for item in session.rounds[1:3]:
        assert item.candidate is None
        assert [attempt.evaluation.summary.split(":")[0] for attempt in item.attempts] == [fault.value] * 3
        assert item.note
    assert len(session.rounds) == 4


def test_a_strategy_that_the_model_ends_is_followed_by_the_next_one_in_the_same_round(bench):
    over = "Strategy: already done — because line 2 does it."
    with ModelServer([answers(FIRST), answers(over), answers(BETTER)]) as server:
        made = bench(server.url)
        session = made.run(2)

    whole_and_well(session, made)
    assert len(session.rounds) == 2
    ended, carried_out = session.rounds[1].attempts
    assert (ended.ended.end, ended.ended.reason) == (StrategyEnd.ALREADY_DONE, "line 2 does it.")
    assert ended.candidate is None
    assert carried_out.prompt.strategy != ended.ended.strategy == ended.prompt.strategy
    assert session.rounds[1].strategy == carried_out.prompt.strategy
    name = ended.ended.strategy.name
    assert f"**{name}**" in server.requests[1]["messages"][1]["content"]
    assert f"**{name}**" not in server.requests[2]["messages"][1]["content"]
    assert made.store.load("relu").rounds[1].ended[0].text == f"{name}: already done (line 2 does it)"


def test_a_strategy_that_is_ended_without_a_reason_is_asked_for_one(bench):
    with ModelServer([answers(FIRST), answers("Strategy: cannot apply"), answers(BETTER)]) as server:
        made = bench(server.url)
        session = made.run(2)
    whole_and_well(session, made)
    unusable_first(session.rounds[1], ReplyFault.NO_REASON)
    assert "gives no reason" in server.requests[2]["messages"][1]["content"]


def wrong_type(exchange: Exchange) -> None:
    """The right events under another name."""
    exchange.begin("text/plain")
    exchange.delta(BETTER)
    exchange.end()


def picky(exchange: Exchange) -> None:
    if "temperature" in exchange.body:
        refuses(400, "temperature is not supported", param="temperature")(exchange)
    else:
        answers(BETTER)(exchange)


HARMLESS = {
    "usage missing": (answers(BETTER, usage=False), lambda reply: reply.usage.estimated),
    "wrong content type": (wrong_type, lambda reply: not reply.usage.estimated),
    "answer in one piece": (lambda exchange: exchange.whole(BETTER), lambda reply: reply.notes == ()),
    "setting refused": (picky, lambda reply: "without it" in reply.notes[0]),
    "reasoning before": (answers(BETTER, reasoning="hm"), lambda reply: reply.reasoning == "hm"),
    "thoughts inside": (answers(f"<think>hm</think>{BETTER}"), lambda reply: reply.reasoning == "hm"),
}


@pytest.mark.every(test=3)
@pytest.mark.parametrize("name", HARMLESS)
@pytest.mark.parametrize("api", list(Api))
def test_what_is_only_odd_is_understood_and_recorded(bench, name, api):
    trouble, seen = HARMLESS[name]
    with ModelServer([answers(FIRST), trouble]) as server:
        made = bench(server.url, api)
        session = made.run(2)
    whole_and_well(session, made)
    assert seen(session.rounds[1].attempts[0].reply)


def test_usage_and_cost_are_kept_by_round_with_the_prediction(bench):
    with ModelServer([answers(FIRST), answers("words only"), answers(BETTER)]) as server:
        session = bench(server.url).run(2)
    first, second = session.rounds
    assert first.usage.cost_usd == pytest.approx((400 + 600 + 200 * 2) / 1e6)
    assert second.usage.cost_usd == pytest.approx(2 * first.usage.cost_usd)
    assert (second.usage.input_tokens, second.usage.cached_tokens) == (2000, 1200)
    assert first.attempts[0].prediction.counter == "gmem_sectors"
    assert first.attempts[0].prediction.change_fraction == 0.5
    assert replace(first.usage, cost_usd=None).cost_usd is None


@pytest.mark.long
def test_what_a_model_wrote_wrongly_is_shown_in_every_view_of_the_record(bench, tmp_path):
    odd = ["half a surrogate pair", "NUL", "escape sequences", "reversed text", "tool call"]
    wrong = [UNUSABLE[name][0] for name in odd]
    thoughtful = answers("prose \ud83d\0\x1b[2J", reasoning="hm \ud83d\0\x1b[2J\u202e")
    with ModelServer([answers(FIRST), *wrong, thoughtful, answers(BETTER)]) as server:
        made = bench(server.url)
        session = made.run(4)

    whole_and_well(session, made)
    assert [len(item.attempts) for item in session.rounds] == [1, 3, 3, 1]
    assert session.rounds[2].attempts[2].reply.reasoning.startswith("hm ")
    write_report(session, str(tmp_path / "relu.html"))
    page = (tmp_path / "relu.html").read_text(encoding="utf-8")
    assert "\0" not in page
    assert "\x1b" not in page
    text_of(session).encode()
    json.dumps(session_json(session, None)).encode()
    json.dumps([detail(session, Live(), number) for number in range(4)]).encode("utf-8")
