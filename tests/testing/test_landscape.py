"""Landscape of strategies with known effects: its author adds what it is asked for, its GPU times what is there."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.evaluation import Tier, Verdict
from cutegen_nb.core.round import Prompt
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.testing import examples
from cutegen_nb.testing.landscape import (
    Landscape,
    LandscapeAuthor,
    LandscapeEvaluator,
    additive,
    carried_out,
    strategies_named,
)

GAINS = {"a": 1.5, "b": 2.0, "vain": 4.0}


@pytest.fixture
def landscape() -> Landscape:
    return Landscape(
        menu=strategies_named(["a", "b", "vain"]),
        time_ms=additive(GAINS),
        blocked={"b": frozenset("a")},
        claims_only=frozenset({"vain"}),
        invents=("own",),
    )


def asked(landscape, strategy, before=frozenset(), purpose="optimise") -> str:
    """Reply to a request for a strategy on a kernel."""
    parent = Candidate(source=landscape.kernel(before), author="landscape")
    prompt = Prompt(system="", user="", digest="", strategy=strategy, parent=parent, purpose=purpose)
    reply = asyncio.run(LandscapeAuthor(landscape).write(prompt, examples.session_of(), lambda _: None))
    return reply.text


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("a", set(), {"a"}),
        ("b", set(), {"b"}),
        ("a", {"b"}, {"a", "b"}),
        ("b", {"a"}, {"a"}),
        ("vain", {"a"}, {"a"}),
        ("unknown", {"a"}, {"a", "unknown"}),
    ],
)
def test_a_strategy_is_added_unless_it_is_held_up_or_only_claimed(landscape, name, before, after):
    text = asked(landscape, Strategy(name=name, statement="."), before)
    assert carried_out(text) == after


def test_a_crossover_is_not_held_up(landscape):
    session = examples.session_of()
    author = LandscapeAuthor(landscape)
    known = Strategy(name="b", statement=".")
    crossed = Strategy(name="both", statement=".", source="crossover", parents=(known.identity,))
    session = replace(session, rounds=(replace(examples.finished_round(0), strategy=known),))
    parent = Candidate(source=landscape.kernel({"a"}), author="landscape")
    prompt = Prompt(system="", user="", digest="", strategy=crossed, parent=parent)
    reply = asyncio.run(author.write(prompt, session, lambda _: None))
    assert carried_out(reply.text) == {"a", "b"}


def test_its_own_strategies_come_in_order_and_then_it_declines(landscape):
    author = LandscapeAuthor(landscape)
    prompt = Prompt(system="", user="", digest="", purpose="invent")
    session = examples.session_of()
    assert "Strategy: own" in asyncio.run(author.write(prompt, session, lambda _: None)).text
    with pytest.raises(Declined, match="holds no further strategy"):
        asyncio.run(author.write(prompt, session, lambda _: None))


@pytest.mark.parametrize(
    ("names", "ms"), [(set(), 8.0), ({"a"}, 8 / 1.5), ({"a", "b"}, 8 / 3.0), ({"a", "nothing"}, 8 / 1.5)]
)
def test_the_time_of_a_kernel_follows_from_what_it_carries_out(landscape, names, ms):
    candidate, rival = (
        Candidate(source=landscape.kernel(kept), author="landscape") for kept in (names, {"a"})
    )
    evaluator = LandscapeEvaluator(landscape)
    found = asyncio.run(evaluator.evaluate(None, candidate, lambda _: None, Tier.B, rival=rival))
    assert found.timing.median_ms == pytest.approx(ms)
    assert found.timing.rival.speedup == pytest.approx((8 / 1.5) / ms)
    assert found.timing.rival.speedup_low < found.timing.rival.speedup < found.timing.rival.speedup_high
    assert found.timing.rival_digest == rival.digest
    assert (found.tier, evaluator.evaluated) == (Tier.B, [candidate.digest])


def test_a_kernel_that_is_marked_wrong_fails(landscape):
    wrong = Candidate(source="# wrong, does: a\nclass ModelNew:\n    pass\n", author="landscape")
    found = asyncio.run(LandscapeEvaluator(landscape).evaluate(None, wrong, lambda _: None))
    assert found.outcome.verdict is Verdict.WRONG_VALUES
