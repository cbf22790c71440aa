"""Each budget fires at its limit and says its figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.history.spending import rounds_spent
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.round import Action, Attempt, Decision, Prompt, Reply, Round, Usage
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.loop.spending import budget_spent
from cutegen_nb.loop.stopping import StopInput, stop_reason
from cutegen_nb.testing import examples


def spent(budget: Budget, **figures) -> Session:
    """One round that cost these figures."""
    usage = Usage(input_tokens=900, output_tokens=100, cost_usd=0.25)
    attempt = Attempt(
        purpose="generate",
        prompt=Prompt(system="", user="", digest=""),
        reply=Reply(text="x", usage=usage),
        candidate=Candidate(source="x = 1\n", author="scripted"),
        evaluation=examples.passed(10),
    )
    made = Round(
        number=0,
        stage=Stage.CORRECT,
        strategy=None,
        attempts=(attempt,),
        comparison=None,
        decisions=(
            Decision(gate="prompt", action=Action.APPROVE, by="person:ada", seconds=40.0),
            Decision(gate="revision", action=Action.REJECT, by="policy:auto", seconds=900.0),
        ),
        started_at="",
        seconds=95.0,
        gpu_s=30.0,
    )
    return Session(
        name="relu",
        problem=examples.relu_problem(),
        facts=examples.relu_facts(),
        device=examples.simulated_device(),
        author="scripted",
        budget=budget,
        created_at="",
        rounds=(replace(made, **figures),),
    )


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget(rounds=1), "the budget of 1 round is spent"),
        (Budget(tokens=1000), "the budget of 1,000 tokens is spent: 1,000 were used"),
        (Budget(dollars=0.25), "the budget of $0.25 is spent: the requests cost $0.2500"),
        (Budget(wall_s=60.0), "the budget of 60 s is spent: the rounds took 95 s"),
        (
            Budget(gpu_s=30.0),
            "the budget of 30 s of GPU time is spent: evaluations held it for 30 s",
        ),
        (
            Budget(person_s=40.0),
            "the budget of 40 s of a person's time is spent: the gates waited for 40 s",
        ),
    ],
)
def test_a_budget_stops_the_session_and_says_its_figures(budget, words):
    session = spent(budget)
    assert budget_spent(session) == words
    assert stop_reason(StopInput(session=session, menu=examples.strategies())) == words


@pytest.mark.parametrize(
    "budget",
    [
        Budget(rounds=2),
        Budget(tokens=1001),
        Budget(dollars=0.26),
        Budget(wall_s=96.0),
        Budget(gpu_s=31.0),
        Budget(person_s=41.0),
    ],
)
def test_a_budget_that_is_not_exhausted_is_silent(budget):
    assert budget_spent(spent(budget)) == ""


def test_minutes_are_said_as_minutes():
    text = budget_spent(spent(Budget(wall_s=600.0), seconds=750.0))
    assert text == "the budget of 10 min is spent: the rounds took 12.5 min"


def test_a_round_that_no_reply_reached_costs_no_round():
    empty = Attempt(
        purpose="generate", prompt=Prompt(system="", user="", digest=""), reply=None, problem="nobody there"
    )
    assert rounds_spent(spent(Budget(), attempts=(empty,))) == 0
    assert rounds_spent(spent(Budget())) == 1


def test_requests_without_a_known_price_count_nothing():
    free = Reply(text="x", usage=Usage(input_tokens=5))
    session = spent(Budget(dollars=0.01))
    attempt = replace(session.rounds[0].attempts[0], reply=free)
    assert budget_spent(spent(Budget(dollars=0.01), attempts=(attempt,))) == ""
