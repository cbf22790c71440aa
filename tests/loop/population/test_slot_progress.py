"""Whoever watches an epoch sees each change of a slot, and nothing after its end."""

import pytest

from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.search.population import MoveKind, Slot
from cutegen_nb.loop.population.planning import PlannedSlot
from cutegen_nb.loop.population.slot_progress import SlotBoard, SlotState
from cutegen_nb.testing.examples import finished_round, strategies


@pytest.fixture
def planned():
    base = finished_round(0, Relation.FIRST)
    slot = Slot(epoch=1, number=1, move=MoveKind.EXTEND, parents=(base.candidate.digest,))
    return PlannedSlot(slot=slot, base=base, other=None, strategy=strategies()[0])


def test_each_change_is_reported_whole(planned):
    seen = []
    board = SlotBoard(seen.append)
    board.open([planned])
    board.change(1, state=SlotState.RUNNING, doing="compiling")
    board.close()
    assert [[(one.strategy, one.state, one.doing) for one in slots] for slots in seen] == [
        [("coalesce", SlotState.PLANNED, "")],
        [("coalesce", SlotState.RUNNING, "compiling")],
        [],
    ]


def test_nobody_has_to_watch(planned):
    board = SlotBoard(None)
    board.open([planned])
    board.change(1, state=SlotState.DONE)
