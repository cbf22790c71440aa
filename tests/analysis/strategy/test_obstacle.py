"""Strategies that are not offered: done already, beside another, impossible, or without what they build on."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.strategy.obstacle import obstacle
from cutegen_nb.core.strategy import Condition, Optimisation, Strategy

VECTORS, SPLIT = Optimisation.VECTORS, Optimisation.SPLIT


def wanted(**conditions) -> Strategy:
    return Strategy(name="wanted", statement="Do it.", **conditions)


@pytest.mark.parametrize(
    ("conditions", "traits", "done"),
    [
        # What the strategy brings is there already, or is not, or nothing tells.
        ({"absent": (VECTORS,)}, {"wide_fraction": 1.0}, True),
        ({"absent": (VECTORS,)}, {"wide_fraction": 0.0}, None),
        ({"absent": (VECTORS,)}, {}, None),
        # What makes it pointless.
        ({"excludes": (SPLIT,)}, {"split": True}, False),
        ({"excludes": (SPLIT,)}, {"split": False}, None),
        ({"excludes": (SPLIT,)}, {}, None),
        # What it builds on.
        ({"present": (SPLIT,)}, {"split": False}, False),
        ({"present": (SPLIT,)}, {"split": True}, None),
        ({"present": (SPLIT,)}, {}, None),
        # What it needs of problem and grid.
        ({"requires": (Condition.FEW_CTAS,)}, {"ctas": 1000.0}, False),
        ({"requires": (Condition.FEW_CTAS,)}, {"ctas": 2.0}, None),
        ({"requires": (Condition.FEW_CTAS,)}, {}, None),
        ({}, {"wide_fraction": 1.0}, None),
    ],
)
def test_each_kind_of_condition_is_an_obstacle_on_one_side_only(workloads, here, conditions, traits, done):
    found = obstacle(wanted(**conditions), here(workloads.relu(64), **traits))
    assert (found.done if found else None) is done
    if found:
        assert found.strategy == "wanted"
        assert found.reason


def test_one_optimisation_of_several_that_is_there_already_is_enough(workloads, here):
    several = wanted(absent=(VECTORS, SPLIT))
    assert obstacle(several, here(workloads.relu(64), wide_fraction=0.0, split=True)).done
    assert obstacle(several, here(workloads.relu(64), wide_fraction=0.0, split=False)) is None


def test_a_strategy_that_is_done_is_said_to_be_so_before_what_it_lacks(workloads, here):
    both = wanted(absent=(VECTORS,), requires=(Condition.LONG_K,))
    found = obstacle(both, here(workloads.relu(64), wide_fraction=1.0))
    assert found.done
    assert "of the bytes move by whole vectors" in found.reason
    assert not obstacle(both, here(workloads.relu(64), wide_fraction=0.0)).done
