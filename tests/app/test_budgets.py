"""Budgets and the schedule are read the same at the terminal and in a cell."""

from __future__ import annotations

import pytest

from cutegen_nb.app.budgets import budget_of, plan_of
from cutegen_nb.cli.main import parse
from cutegen_nb.core.session import Budget, Plan, Schedule
from cutegen_nb.notebook.arguments import parse_cell

PAPER = Plan(schedule=Schedule.PAPER, plateau_rounds=4)
OPTIONS = "--tokens 50000 --dollars 1.5 --minutes 10 --gpu-minutes 2.5 --person-minutes 4"


def at_the_terminal(words: str):
    return parse(["run", "relu.py", *words.split()])


@pytest.mark.parametrize("read", [at_the_terminal, parse_cell])
def test_each_budget_reaches_the_session_in_its_unit(read):
    options = read(f"--rounds 9 {OPTIONS}")
    assert budget_of(options, options.rounds) == Budget(
        rounds=9, tokens=50_000, dollars=1.5, wall_s=600.0, gpu_s=150.0, person_s=240.0
    )


@pytest.mark.parametrize("read", [at_the_terminal, parse_cell])
@pytest.mark.parametrize(
    ("words", "new", "stored"),
    [
        ("", Plan(), PAPER),
        ("--schedule paper", Plan(schedule=Schedule.PAPER), PAPER),
        ("--plateau 3", Plan(plateau_rounds=3), Plan(schedule=Schedule.PAPER, plateau_rounds=3)),
        ("--schedule plateau", Plan(), Plan(plateau_rounds=4)),
        ("--schedule plateau --plateau 1", Plan(plateau_rounds=1), Plan(plateau_rounds=1)),
    ],
)
def test_what_is_not_said_of_a_plan_stays_as_it_is_stored(read, words, new, stored):
    change = plan_of(read(words))
    assert change(Plan()) == new
    assert change(PAPER) == stored


def test_the_help_says_what_happens_when_a_budget_is_reached(capsys):
    with pytest.raises(SystemExit):
        at_the_terminal("--help")
    told = " ".join(capsys.readouterr().out.split())
    assert "The round that reaches a budget is still finished and stored" in told
    assert "an open gate goes on waiting" in told
    assert "none is interrupted" in told


def test_nothing_said_limits_rounds_alone():
    assert budget_of(at_the_terminal(""), 6) == Budget(rounds=6)
