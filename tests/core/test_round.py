"""Rounds: opening exchange, title, usage, approval, ended strategies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.finding import Exhibit
from cutegen_nb.core.round import (
    Action,
    Attempt,
    Decision,
    EndedStrategy,
    Epoch,
    PredictedChange,
    Prediction,
    StrategyEnd,
    Usage,
    opening,
)
from cutegen_nb.core.search.population import MoveKind, Slot
from cutegen_nb.core.strategy import Direction
from cutegen_nb.testing import examples

ROUND = examples.finished_round(1)
USUAL = ROUND.attempts[0]
ENDED = EndedStrategy(
    strategy=examples.strategies()[0], end=StrategyEnd.ALREADY_DONE, reason="Every access has 128 bits."
)
WITHOUT_CODE = Attempt(purpose="optimise", prompt=USUAL.prompt, reply=USUAL.reply, ended=ENDED)


def decided(action, evaluation=None, reason=""):
    attempt = replace(USUAL, evaluation=evaluation or USUAL.evaluation)
    made = Decision(gate="revision", action=action, by="person:ada", reason=reason)
    return replace(ROUND, attempts=(attempt,), decisions=(made,))


@pytest.mark.parametrize(
    ("attempts", "index"),
    [
        ((USUAL,), 0),
        ((USUAL, USUAL), 0),
        ((WITHOUT_CODE, USUAL, USUAL), 1),
        ((WITHOUT_CODE, USUAL, WITHOUT_CODE), 2),
        ((WITHOUT_CODE, WITHOUT_CODE), 1),
    ],
)
def test_a_round_opens_after_the_last_strategy_that_its_author_ended(attempts, index):
    numbered = tuple(replace(item, problem=str(place)) for place, item in enumerate(attempts))
    assert opening(numbered) is numbered[index]


def test_a_round_without_attempts_has_no_opening():
    with pytest.raises(ValueError, match="without attempts"):
        opening(())


def test_ended_strategies_are_told_with_their_reason():
    assert ENDED.text == "coalesce: already done (Every access has 128 bits)"
    assert replace(ROUND, attempts=(WITHOUT_CODE, USUAL)).ended == (ENDED,)
    assert ROUND.ended == ()


def test_the_last_candidate_is_the_rounds_and_its_evaluation_with_it():
    failed = replace(USUAL, evaluation=examples.failed(Verdict.CRASHED, "It crashed."))
    repaired = replace(ROUND, attempts=(failed, USUAL))
    assert repaired.candidate == USUAL.candidate
    assert repaired.evaluation.passed
    silent = replace(ROUND, attempts=(USUAL, WITHOUT_CODE))
    assert silent.candidate == USUAL.candidate
    nothing = replace(ROUND, attempts=(WITHOUT_CODE,))
    assert (nothing.candidate, nothing.evaluation) == (None, None)


def test_usages_add_up_and_a_cost_counts_only_where_a_price_is_known():
    one = Usage(input_tokens=10, output_tokens=2, seconds=0.1, cached_tokens=4, cost_usd=0.25)
    two = Usage(input_tokens=1, output_tokens=1, seconds=0.2, reasoning_tokens=1, estimated=True)
    assert one + two == Usage(
        input_tokens=11, output_tokens=3, seconds=0.3, cached_tokens=4, reasoning_tokens=1, cost_usd=0.25,
        estimated=True,
    )  # fmt: skip
    assert (two + two).cost_usd is None
    assert replace(ROUND, attempts=(USUAL, WITHOUT_CODE)).usage == USUAL.reply.usage + USUAL.reply.usage
    assert replace(ROUND, attempts=(replace(USUAL, reply=None),)).usage == Usage()


CHEATED = replace(examples.failed(Verdict.CHEATED, "."), exhibits=(Exhibit(kind="patched", statement="."),))
PROVISIONAL = replace(examples.passed(10), provisional=("other shapes: out of time",))


@pytest.mark.parametrize(
    ("item", "approved"),
    [
        (decided(Action.APPROVE), True),
        (decided(Action.REJECT), False),
        (decided(Action.APPROVE, PROVISIONAL), False),
        (decided(Action.APPROVE, CHEATED), False),
        (decided(Action.OVERRULE, PROVISIONAL, "enough for me"), True),
        (decided(Action.OVERRULE, CHEATED, "a false alarm"), True),
        (decided(Action.OVERRULE, CHEATED, " "), False),
        (decided(Action.OVERRULE, examples.failed(Verdict.CRASHED, "."), "never mind"), False),
        (replace(ROUND, decisions=()), False),
        (replace(ROUND, decisions=(replace(ROUND.decisions[0], gate="prompt"),)), False),
        (replace(ROUND, decisions=(*decided(Action.STEER).decisions, *ROUND.decisions)), True),
        (replace(ROUND, attempts=()), False),
    ],
)
def test_only_what_stands_or_was_overruled_with_a_reason_may_be_built_upon(item, approved):
    assert item.approved is approved


def test_a_round_is_named_by_its_strategy():
    assert ROUND.title == "coalesce"
    assert replace(ROUND, strategy=None).title == "first kernel"
    slot = Slot(epoch=1, number=1, move=MoveKind.INVENT, parents=())
    assert replace(ROUND, strategy=None, slot=slot).title == "no strategy stated"


def test_the_changes_of_a_prediction_come_in_the_authors_order():
    other = PredictedChange(counter="barriers", direction=Direction.UP)
    said = Prediction(
        text="", counter="branches", direction=Direction.DOWN, change_fraction=0.5, others=(other,)
    )
    main = PredictedChange(counter="branches", direction=Direction.DOWN, change_fraction=0.5)
    assert said.changes == (main, other)
    assert Prediction(text="", others=(other,)).changes == (other,)


def test_the_champion_of_an_epoch_is_its_best_else_its_fastest_member():
    assert Epoch(number=1, members=("a", "b"), best="b").champion == "b"
    assert Epoch(number=1, members=("a", "b")).champion == "a"
    assert Epoch(number=1, members=()).champion == ""
