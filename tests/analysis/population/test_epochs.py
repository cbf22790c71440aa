"""Epochs of a population, with members, duels and decisions."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.population.epochs import epoch_line, epoch_summaries
from cutegen_nb.core.round import Epoch
from cutegen_nb.testing import examples

EVOLVED = examples.evolved_session()


def test_an_epoch_tells_members_duels_and_decisions():
    (found,) = epoch_summaries(EVOLVED)
    assert found.members == ("r2", "r0")
    assert found.duels == ("r2 against r1: the only one with tiles",)
    assert found.decisions == (
        "ada pinned r0: “the only one with tiles”",
        "ada asked for the strategy mine: the only one with tiles",
        "ada approved the members",
    )
    assert epoch_line(found) == "Epoch 1: r2, r0 go on, the best at 1.11×."
    alone = replace(found, members=("r0",), speed=None, restarted=True)
    assert epoch_line(alone) == ("Epoch 1: r0 goes on; no gain for some epochs: the next one starts anew.")
    assert epoch_line(replace(found, members=(), speed=None)) == "Epoch 1: no kernel goes on."


def test_a_member_that_no_round_holds_is_named_by_its_digest():
    lost = replace(EVOLVED, epochs=(Epoch(number=1, members=("f" * 64,)),))
    assert epoch_summaries(lost)[0].members == ("f" * 12,)
