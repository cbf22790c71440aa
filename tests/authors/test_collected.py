"""A streamed answer grows to a reply."""

import json

import pytest

from cutegen_nb.authors.collected import AnswerAccumulator
from cutegen_nb.authors.server_profile import Price
from cutegen_nb.core.round import Usage


@pytest.fixture
def told():
    return []


@pytest.fixture
def now():
    return [0.0]


@pytest.fixture
def answer(told, now):
    return AnswerAccumulator(told.append, prompt_characters=400, clock=lambda: now[0])


def test_reasoning_within_the_text_is_kept_apart(answer):
    answer.add(text="<think>first</think>the kernel")
    answer.finish_reason = "stop"
    reply = answer.reply(Usage(), ())
    assert (reply.text.strip(), reply.reasoning, reply.finish_reason) == ("the kernel", "first", "stop")


def test_without_a_finish_reason_the_answer_is_incomplete(answer):
    answer.add(text="half")
    assert not answer.ended
    assert answer.reply(Usage(), ()).finish_reason == "incomplete"


def test_a_tool_call_that_nobody_offered_is_the_text(answer):
    answer.add_call(0, "run", '{"a"')
    answer.add_call(0, "", ": 1}")
    reply = answer.reply(Usage(), ())
    assert reply.finish_reason == "tool_calls"
    assert json.loads(reply.text)["tool_calls"] == [{"name": "run", "arguments": '{"a": 1}'}]


def test_tokens_are_the_servers_or_an_estimate_that_says_so(answer):
    answer.add(text="x" * 80)
    guess = answer.usage(1.0, None)
    assert (guess.input_tokens, guess.output_tokens, guess.estimated, guess.cost_usd) == (100, 20, True, None)
    answer.count(Usage(input_tokens=7, output_tokens=3))
    counted = answer.usage(1.0, Price(input=1.0, output=2.0))
    assert (counted.input_tokens, counted.estimated, counted.cost_usd) == (7, False, 0.000013)


def test_growth_is_told_now_and_then_with_the_text_so_far(answer, told):
    for _ in range(10):
        answer.add(text="x" * 100)
    assert [len(item.written) for item in told] == [100, 500, 900]


def test_growth_of_a_slow_answer_is_told_twice_a_second(answer, told, now):
    for _ in range(8):
        answer.add(text="x")
        now[0] += 0.25
    assert [len(item.written) for item in told] == [1, 3, 5, 7]
