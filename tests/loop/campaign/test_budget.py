"""Budgets over a campaign: what is left for the next problem, and the sentence where nothing is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.search.campaign import CampaignBudget
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.session import Budget
from cutegen_nb.loop.campaign.budget import Spending, budget_left, spending_of, together, total_spent
from cutegen_nb.testing import examples

SPENT = Spending(tokens=600, dollars=1.5, wall_s=90.0, gpu_s=30.0)


@pytest.mark.parametrize(
    ("each", "total", "left"),
    [
        (Budget(), CampaignBudget(), Budget()),
        (Budget(tokens=500), CampaignBudget(), Budget(tokens=500)),
        (Budget(), CampaignBudget(tokens=1000), Budget(tokens=400)),
        (Budget(tokens=300), CampaignBudget(tokens=1000), Budget(tokens=300)),
        (Budget(tokens=500), CampaignBudget(tokens=1000), Budget(tokens=400)),
        (Budget(dollars=1.0), CampaignBudget(dollars=2.0), Budget(dollars=0.5)),
        (Budget(wall_s=60.0), CampaignBudget(wall_s=120.0), Budget(wall_s=30.0)),
        (Budget(gpu_s=1.0), CampaignBudget(gpu_s=60.0), Budget(gpu_s=1.0)),
        (
            Budget(rounds=9, epochs=2, person_s=5.0),
            CampaignBudget(tokens=700),
            Budget(rounds=9, epochs=2, person_s=5.0, tokens=100),
        ),
    ],
)
def test_a_problem_has_its_own_limits_and_at_most_what_the_others_left(each, total, left):
    assert budget_left(each, total, SPENT) == left


@pytest.mark.parametrize(
    ("total", "sentence"),
    [
        (CampaignBudget(), ""),
        (CampaignBudget(tokens=601, dollars=1.6, wall_s=91.0, gpu_s=31.0), ""),
        (CampaignBudget(tokens=600), "the budget of 600 tokens over the campaign is spent: 600 tokens were used; a larger --total-tokens goes on"),
        (CampaignBudget(dollars=1.0), "the budget of $1.00 over the campaign is spent: $1.50 were used; a larger --total-dollars goes on"),
        (CampaignBudget(wall_s=60.0), "the budget of 1 min over the campaign is spent: 1.5 min were used; a larger --total-minutes goes on"),
        (CampaignBudget(gpu_s=30.0), "the budget of 0.5 min over the campaign is spent: 0.5 min were used; a larger --total-gpu-minutes goes on"),
        (CampaignBudget(tokens=1, wall_s=1.0), "the budget of 0.0167 min over the campaign is spent: 1.5 min were used; a larger --total-minutes goes on"),
    ],
)  # fmt: skip
def test_the_first_total_that_is_spent_is_told_with_its_option(total, sentence):
    assert total_spent(total, SPENT) == sentence


def test_hours_are_written_as_whole_minutes():
    text = total_spent(CampaignBudget(wall_s=36_000.0), replace(SPENT, wall_s=90_000.0))
    assert "the budget of 600 min over the campaign is spent: 1,500 min were used" in text


def test_the_amounts_of_sessions_add_up():
    session = examples.session_of(Relation.FIRST, Relation.LESS_WORK)
    assert spending_of(session) == Spending(tokens=14, dollars=0.0, wall_s=3.0, gpu_s=0.0)
    assert together([SPENT, spending_of(session), Spending()]) == Spending(
        tokens=614, dollars=1.5, wall_s=93.0, gpu_s=30.0
    )
