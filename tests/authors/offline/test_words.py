"""Strategies crossed and restated in words."""

import pytest

from cutegen_nb.authors.offline.words import crossed, restated
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.round import Prompt
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.strategy import Optimisation, Strategy
from cutegen_nb.testing.examples import session_of

PROMPT = Prompt(system="", user="", digest="", crossed=("r0", "r9"))


def test_a_strategy_is_restated_as_done_with_what_it_brings():
    strategy = Strategy(name="vectors", statement="Move 128\nbits.", absent=(Optimisation.VECTORS,))
    assert restated(strategy) == "Done: Move 128 bits.\nCarries: vectors-128\nNot done: none\n"
    with pytest.raises(Declined, match="no strategy to restate"):
        restated(None)


def test_a_kernel_that_is_not_there_or_another_authors_is_declined():
    session = session_of(Relation.FIRST)
    with pytest.raises(Declined, match="no kernel of r9"):
        crossed(PROMPT, session, (), "offline")
    with pytest.raises(Declined, match="one is by test"):
        crossed(Prompt(system="", user="", digest="", crossed=("r0",)), session, (), "offline")
