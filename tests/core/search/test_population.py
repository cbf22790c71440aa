"""Slots and duels of an epoch survive the store."""

import pytest

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.search.population import Duel, MoveKind, Slot


@pytest.mark.parametrize("move", MoveKind)
def test_a_slot_comes_back_with_its_move(move):
    slot = Slot(epoch=2, number=1, move=move, parents=("a", "b"))
    assert decode(Slot, encode(slot)) == slot


def test_a_duel_that_told_nothing_has_no_ratio():
    duel = Duel(challenger="a", holder="b", speedup=None, reason="It did not run.")
    assert decode(Duel, encode(duel)) == duel
