"""Strategies that the author ends with a reason instead of code, in a round and in the rounds after it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cutegen_nb.authors.replay import RecordedEvaluations, ReplayAuthor
from cutegen_nb.core.evaluation import NotJudgedReason, Verdict
from cutegen_nb.core.round import StrategyEnd, opening
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.replaying import RecordedDecisions, replay_session
from cutegen_nb.testing.examples import failed, passed

DONE = "Strategy: already done — because every access has 128 bits."
CANNOT = "Strategy: cannot apply — because there is nothing to reduce."
MENU = tuple(Strategy(name=f"s{number}", statement=f"Do number {number}.") for number in range(6))


def names(session) -> list[str | None]:
    return [item.strategy and item.strategy.name for item in session.rounds]


def asked(loop) -> list[str | None]:
    return [prompt.strategy and prompt.strategy.name for prompt in loop.model.prompts]


@pytest.mark.parametrize(
    ("answer", "end", "reason"),
    [
        (DONE, StrategyEnd.ALREADY_DONE, "every access has 128 bits."),
        (CANNOT, StrategyEnd.CANNOT_APPLY, "there is nothing to reduce."),
        (
            "**Strategy:** Cannot apply: the row is\none element.",
            StrategyEnd.CANNOT_APPLY,
            "the row is one element.",
        ),
    ],
)
def test_the_next_strategy_follows_in_the_same_round_and_both_are_kept(
    stage, reply_with, answer, end, reason
):
    loop = stage(
        [reply_with("first"), answer, reply_with("second")],
        {"first": passed(1000), "second": passed(500)},
        menu=MENU,
    )
    session = loop.run(rounds=2)
    item = session.rounds[1]
    assert asked(loop) == [None, "s0", "s1"]
    assert (item.strategy.name, item.approved) == ("s1", True)
    (ended,) = item.ended
    assert (ended.strategy.name, ended.end, ended.reason) == ("s0", end, reason)
    assert opening(item.attempts).prompt.strategy.name == "s1"
    assert ended.text in loop.progress
    assert loop.store.load("relu").rounds == session.rounds


def test_a_round_asks_for_four_strategies_at_most_and_then_ends_with_the_reasons(stage, reply_with):
    loop = stage(
        [reply_with("first"), *[DONE] * 4, reply_with("second")],
        {"first": passed(1000), "second": passed(500)},
        menu=MENU,
    )
    session = loop.run(rounds=3)
    item = session.rounds[1]
    assert asked(loop) == [None, "s0", "s1", "s2", "s3", "s4"]
    assert [ended.strategy.name for ended in item.ended] == ["s0", "s1", "s2", "s3"]
    assert item.candidate is None
    assert item.note == "the author ended s0, s1, s2, s3: already done (every access has 128 bits)"
    assert names(session) == [None, "s3", "s4"]
    assert session.rounds[2].approved


def test_the_next_request_tells_what_was_not_tried_and_why(stage, reply_with):
    loop = stage(
        [reply_with("first"), DONE, reply_with("second"), reply_with("third")],
        {"first": passed(1000), "second": passed(500), "third": passed(400)},
        menu=MENU,
    )
    loop.run(rounds=3)
    assert "not tried, s0: already done (every access has 128 bits)" in loop.model.prompts[-1].user


@pytest.mark.parametrize(("answer", "later"), [(DONE, ["s2"]), (CANNOT, ["s2", "s0"])])
def test_what_is_done_is_over_for_descendants_and_what_cannot_apply_is_offered_to_others_last(
    stage, reply_with, answer, later
):
    loop = stage(
        [reply_with("first"), answer, *(reply_with(mark) for mark in ("second", "third", "fourth"))],
        {"first": passed(1000), "second": passed(500), "third": passed(600), "fourth": passed(700)},
        menu=MENU[:3],
    )
    session = loop.run()
    assert names(session) == [None, "s1", *later]
    assert session.stopped.startswith("every strategy was tried on r1")
    assert ("the author ended s0: already done" in session.stopped) is (answer is DONE)


def test_the_reasons_are_told_when_a_session_ends(stage, reply_with):
    loop = stage([reply_with("first"), DONE, CANNOT], {"first": passed(1000)}, menu=MENU[:2])
    session = loop.run()
    assert session.stopped.startswith("every strategy was tried on r0")
    assert session.stopped.endswith(
        "; the author ended s0: already done (every access has 128 bits); "
        "s1: cannot apply (there is nothing to reduce)"
    )
    assert session.best.number == 0


def test_an_end_without_a_reason_is_asked_for_again(stage, reply_with):
    loop = stage(
        [reply_with("first"), "Strategy: already done", reply_with("second")],
        {"first": passed(1000), "second": passed(500)},
        menu=MENU,
    )
    session = loop.run(rounds=2)
    assert asked(loop) == [None, "s0", "s0"]
    assert "The line `Strategy: already done` gives no reason." in loop.model.prompts[2].user
    assert session.rounds[1].ended == ()
    assert session.rounds[1].approved


def test_code_counts_before_the_words_that_end_a_strategy(stage, reply_with):
    loop = stage(
        [reply_with("first"), f"{DONE}\n\n{reply_with('second')}"],
        {"first": passed(1000), "second": passed(500)},
        menu=MENU,
    )
    session = loop.run(rounds=2)
    assert session.rounds[1].ended == ()
    assert (session.rounds[1].strategy.name, session.rounds[1].approved) == ("s0", True)


@pytest.mark.parametrize("broken", [False, True])
def test_a_first_kernel_and_a_repair_cannot_be_ended(stage, reply_with, broken):
    before = [reply_with("broken"), "The tail."] if broken else []
    loop = stage(
        [*before, CANNOT, reply_with("first")],
        {"broken": failed(Verdict.WRONG_VALUES, "Wrong."), "first": passed(1000)},
        menu=MENU,
    )
    session = loop.run(rounds=1)
    refused, used = session.rounds[0].attempts[-2:]
    assert refused.ended is None
    assert refused.evaluation.outcome.reason is NotJudgedReason.REPLY_UNUSABLE
    assert used.purpose == "reply"
    assert session.rounds[0].approved


def test_a_round_with_ended_strategies_replays(stage, reply_with):
    loop = stage(
        [reply_with("first"), DONE, CANNOT, reply_with("second"), *[DONE] * 3],
        {"first": passed(1000), "second": passed(500)},
        menu=MENU,
    )
    recorded = loop.run()
    effects = replace(
        loop.effects,
        author=ReplayAuthor(recorded),
        evaluator=RecordedEvaluations(recorded),
        approver=RecordedDecisions(recorded),
    )
    again = asyncio.run(replay_session(recorded, effects, loop.store, "again"))
    assert again.stopped == recorded.stopped
    assert [item.ended for item in again.rounds] == [item.ended for item in recorded.rounds]
    assert names(again) == names(recorded)
    assert [item.note for item in again.rounds] == [item.note for item in recorded.rounds]
