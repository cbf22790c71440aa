"""Strategies are told apart by their words where a name may be given twice."""

from dataclasses import replace

import pytest

from cutegen_nb.core.strategy import Optimisation, Strategy, StrategySource

LIBRARY = Strategy(name="unroll", statement="Several vectors in flight.")
STATED = replace(LIBRARY, source=StrategySource.MODEL.value)


def test_a_library_may_correct_its_words_and_keeps_the_identity():
    assert LIBRARY.identity == replace(LIBRARY, statement="Other words.").identity == "unroll"


@pytest.mark.parametrize("change", [{"statement": "Other words."}, {"parents": ("tiles",)}])
def test_two_strategies_of_one_name_have_different_identities(change):
    assert STATED.identity.startswith("unroll-")
    assert replace(STATED, **change).identity != STATED.identity
    assert replace(STATED).identity == STATED.identity


def test_words_that_cannot_be_encoded_have_an_identity_too():
    assert replace(STATED, statement="\ud800").identity.startswith("unroll-")


def test_an_optimisation_is_its_name_and_carries_its_meaning():
    assert Optimisation("coalesced") is Optimisation.COALESCED
    assert all(one.meaning.endswith(".") for one in Optimisation)
    assert len({one.meaning for one in Optimisation}) == len(Optimisation)
