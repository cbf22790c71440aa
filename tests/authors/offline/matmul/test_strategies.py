"""Strategies of products have names of their own and move counters that exist."""

from dataclasses import fields

from cutegen_nb.authors.offline.matmul import strategies
from cutegen_nb.authors.offline.matmul.choices import STEPS
from cutegen_nb.core.profile import Counters
from cutegen_nb.core.strategy import Strategy


def every():
    found = []
    for value in vars(strategies).values():
        items = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
        found += [item for item in items if isinstance(item, Strategy)]
    return found


def test_each_name_is_a_step_and_each_counter_exists():
    counters = {one.name for one in fields(Counters)} | {"latency_ms"}
    counters |= {name for name in dir(Counters) if not name.startswith("_")}
    assert {one.name for one in every()} <= STEPS.keys()
    assert {effect.counter for one in every() for effect in one.effects} <= counters
    assert all(one.statement.endswith(".") for one in every())
