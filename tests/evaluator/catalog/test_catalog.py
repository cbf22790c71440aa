"""The registry names every check once, says what it stops, and where its code is."""

from __future__ import annotations

import importlib

from cutegen_nb.core.evaluation import Tier
from cutegen_nb.evaluator.catalog.catalog import CHECKS, by_name


def test_names_are_unique_and_every_check_says_what_it_stops_and_costs():
    names = [item.name for item in CHECKS]
    assert len(set(names)) == len(names)
    assert all(item.stops and item.cost and item.protocol for item in CHECKS)
    assert {item.tier for item in CHECKS} == set(Tier)
    assert by_name("many calls").tier is Tier.B


def test_every_check_has_its_code_where_it_says():
    for item in CHECKS:
        importlib.import_module(item.where)


def test_tiers_include_the_ones_before():
    assert Tier.C.includes(Tier.A)
    assert Tier.B.includes(Tier.B)
    assert not Tier.A.includes(Tier.B)
