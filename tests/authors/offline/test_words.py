"""A strategy restated in words."""

import pytest

from cutegen_nb.authors.offline.words import labelled, restated
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.strategy import Optimisation, Strategy


def test_a_strategy_is_restated_as_done_with_what_it_brings():
    strategy = Strategy(name="vectors", statement="Move 128\nbits.", absent=(Optimisation.VECTORS,))
    assert restated(strategy) == "Done: Move 128 bits.\nCarries: vectors-128\nNot done: none\n"
    with pytest.raises(Declined, match="no strategy to restate"):
        restated(None)


def test_an_empty_value_of_a_labelled_line_is_none():
    assert labelled({"Done": "", "Carries": "a\n b"}) == "Done: none\nCarries: a b\n"
