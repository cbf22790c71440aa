"""Relations of a candidate to the best before it."""

from __future__ import annotations

from cutegen_nb.core.search.comparison import Relation


def test_the_relations_that_make_a_best_are_gains_and_the_first():
    assert {item for item in Relation if item.is_better} == {
        Relation.FIRST, Relation.FASTER, Relation.ESTIMATED_FASTER, Relation.LESS_WORK,
    }  # fmt: skip


def test_a_person_reads_that_there_is_no_clear_difference_and_the_store_keeps_its_value():
    assert Relation.CANNOT_TELL == "cannot tell"
    assert Relation.CANNOT_TELL.words == "no clear difference"
    assert Relation.ESTIMATED_FASTER.words == "estimated faster"
