"""Every check of the module stands in the catalogue, where reports and the command look for it."""

from cutegen_nb.evaluator.catalog import memory
from cutegen_nb.evaluator.catalog.catalog import CHECKS
from cutegen_nb.evaluator.catalog.check import Check


def test_no_check_is_left_out_of_the_catalogue():
    mine = [one for one in vars(memory).values() if isinstance(one, Check)]
    assert mine
    assert [one.name for one in mine if one not in CHECKS] == []
