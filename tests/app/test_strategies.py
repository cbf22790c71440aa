"""Known strategies of library and records, found by name and listed."""

import pytest

from cutegen_nb.app.strategies import explanation_text, known_strategies, listing_text, named_strategy
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.wiring import Settings


@pytest.fixture(scope="module")
def known():
    return known_strategies(Settings())


def test_a_strategy_is_found_by_its_name(known):
    name = known.summaries[0].strategy.name
    assert named_strategy(name, known).strategy.name == name


def test_a_mistyped_name_is_answered_with_the_nearest(known):
    name = known.summaries[0].strategy.identity
    with pytest.raises(UsageError, match=f"did you mean {name}"):
        named_strategy(name[:-1], known)


def test_a_class_shows_fewer_strategies_than_all(known):
    everything = listing_text(known)
    one_class = listing_text(known, WorkloadClass.SCAN.value)
    assert len(one_class) < len(everything)
    assert all(item.strategy.identity in everything for item in known.summaries if item.records)


def test_what_a_kernel_does_is_told_only_where_it_says_more_than_the_strategy(known):
    told = explanation_text(named_strategy("cta-scan", known))
    assert "- 1.36×" in told
    assert "same optimisations as its parent" not in told
    assert "carried out as: " in explanation_text(named_strategy("vectorise-128", known))
