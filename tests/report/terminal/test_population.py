"""A population as a table in the terminal."""

from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.report.terminal.population import population_table
from cutegen_nb.testing.examples import evolved_session, session_of


def test_each_kernel_has_a_row_with_move_and_marks():
    shown = population_table(evolved_session())
    assert all(word in shown for word in ("r0", "r2", "extend", "timed in the same turns"))
    assert "r0 !" in shown or "r0 ★!" in shown  # pinned at the gate of the epoch


def test_a_chain_is_one_sentence():
    assert "is a chain of rounds" in population_table(session_of(Relation.FIRST))


def test_words_cannot_steer_the_terminal():
    assert "\x1b" not in population_table(evolved_session(words="\x1b[2Jgone"))
