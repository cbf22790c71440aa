"""Arguments of commands: groups, and the nearest word."""

from __future__ import annotations

import argparse

from cutegen_nb.app.arguments import add_arguments, argument, nearest
from cutegen_nb.app.commands import COMMANDS


def test_the_nearest_word_is_offered_and_none_where_none_is_near():
    assert nearest("reprot", ["report", "run"]) == "report"
    assert nearest("zzz", ["report", "run"]) == ""


def test_arguments_of_one_group_stand_under_its_title():
    parser = argparse.ArgumentParser()
    run = next(item for item in COMMANDS if item.name == "run")
    add_arguments(parser, [*(run.arguments or ()), argument("--last", help="the last")])
    text = parser.format_help()

    for title in ("budgets besides --rounds:", "a population instead of a chain:"):
        assert text.count(title) == 1
