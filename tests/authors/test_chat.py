"""Bodies and answers of the chat completions API."""

from types import SimpleNamespace

import pytest

from cutegen_nb.authors.chat import Chat
from cutegen_nb.authors.collected import AnswerAccumulator
from cutegen_nb.authors.server_profile import RequestLimits, ServerProfile
from cutegen_nb.core.round import Prompt, Usage

PROMPT = Prompt(system="rules", user="write", digest="")


def request(*without, url="http://localhost/v1"):
    limits = RequestLimits(max_output_tokens=100)
    profile = ServerProfile(name="p", model="m", base_url=url, temperature=0.5, limits=limits)
    return Chat().request(profile, PROMPT, frozenset(without))


def test_a_setting_that_the_server_refused_is_left_out():
    assert request()["temperature"] == 0.5
    assert "temperature" not in request("temperature")
    assert "stream" not in request("stream")
    assert [one["role"] for one in request("system")["messages"]] == ["user"]


@pytest.mark.parametrize(
    ("url", "without", "name"),
    [
        ("http://localhost/v1", (), "max_tokens"),
        ("http://localhost/v1", ("max_tokens",), "max_completion_tokens"),
        ("https://api.openai.com/v1", (), "max_completion_tokens"),
    ],
)
def test_the_limit_has_the_name_that_the_server_knows(url, without, name):
    body = request(*without, url=url)
    assert body[name] == 100
    assert len({"max_tokens", "max_completion_tokens"} & body.keys()) == 1


def test_reasoning_is_read_under_either_name():
    collected = AnswerAccumulator(lambda _: None, 0)
    for name in ("reasoning_content", "reasoning"):
        choice = SimpleNamespace(
            delta=SimpleNamespace(content=None, **{name: f"{name};"}), finish_reason=None
        )
        Chat().take(SimpleNamespace(usage=None, choices=[choice]), collected)
    assert collected.reply(Usage(), ()).reasoning == "reasoning_content;reasoning;"


def test_an_answer_of_another_shape_is_nothing():
    collected = AnswerAccumulator(lambda _: None, 0)
    for answer in (SimpleNamespace(), SimpleNamespace(choices="none", usage=None), "text"):
        Chat().take_whole(answer, collected)
    assert not collected.anything
