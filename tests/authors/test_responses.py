"""Bodies and events of the responses API."""

from types import SimpleNamespace

import pytest

from cutegen_nb.authors.collected import AnswerAccumulator
from cutegen_nb.authors.responses import Responses
from cutegen_nb.authors.server_profile import ServerProfile
from cutegen_nb.core.round import Prompt, Usage

PROMPT = Prompt(system="rules", user="write", digest="")


def request(*without):
    profile = ServerProfile(name="p", model="m", reasoning_effort="low")
    return Responses().request(profile, PROMPT, frozenset(without))


def test_the_server_is_asked_to_keep_nothing():
    assert request()["store"] is False
    assert "store" not in request("store")
    assert request("system")["input"] == "rules\n\nwrite"


def taken(*events):
    collected = AnswerAccumulator(lambda _: None, 0)
    for event in events:
        Responses().take(SimpleNamespace(**event), collected)
    return collected.reply(Usage(), ())


@pytest.mark.parametrize(
    ("response", "finish"),
    [
        ({"status": "completed"}, "stop"),
        (
            {"status": "incomplete", "incomplete_details": SimpleNamespace(reason="max_output_tokens")},
            "length",
        ),
        ({"status": "failed", "error": SimpleNamespace(message="overloaded")}, "failed: overloaded"),
        ({"status": "cancelled"}, "incomplete"),
    ],
)
def test_the_status_is_the_finish_reason(response, finish):
    end = {"type": f"response.{response['status']}", "response": SimpleNamespace(**response)}
    if response["status"] == "cancelled":
        end["type"] = "response.incomplete"
    text = {"type": "response.output_text.delta", "delta": "kernel"}
    reply = taken(text, end)
    assert (reply.text, reply.finish_reason) == ("kernel", finish)


def test_an_answer_that_comes_only_at_the_end_is_read_there():
    part = SimpleNamespace(type="output_text", text="kernel")
    output = [SimpleNamespace(type="message", content=[part])]
    response = SimpleNamespace(status="completed", output=output)
    assert taken({"type": "response.completed", "response": response}).text == "kernel"
