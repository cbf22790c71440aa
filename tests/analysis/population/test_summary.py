"""Populations in rows and lines: descent, speed, optimisations, decisions."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.population.summary import population_rows, population_text, speed_source
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.round import Action, Decision, Epoch
from cutegen_nb.core.strategy import Alignment, Optimisation
from cutegen_nb.testing import examples

EVOLVED = examples.evolved_session()


def test_each_round_is_a_row_with_move_parents_and_fate():
    rows = population_rows(EVOLVED)
    assert [(row.label, row.epoch, row.move, row.parents) for row in rows] == [
        ("r0", 0, "", ()), ("r1", 1, "extend", (0,)), ("r2", 1, "request", (0,)), ("r3", 1, "invent", (0,)),
    ]  # fmt: skip
    assert [row.member for row in rows] == [True, False, True, False]
    assert [row.pinned for row in rows] == [True, False, False, False]
    assert [row.member_of for row in rows] == [(1,), (), (1,), ()]
    assert [row.outcome for row in rows] == ["first", "less work", "less work", "no candidate"]
    assert rows[0].strategy == "first kernel"
    assert rows[2].carries == ("coalesced",)
    assert rows[2].corrections == ("pipelined: the only one with tiles",)
    assert rows[3].speed is None
    assert rows[3].note == "the only one with tiles"
    assert rows[3].bound == ""


def test_a_duel_gives_the_speed_of_a_row():
    rows = population_rows(EVOLVED)
    assert rows[2].speed == 1.1 * rows[1].speed


def test_what_is_only_claimed_is_told_beside_what_is_in_force():
    aligned = Alignment(
        statement=".", by="test", in_force=(Optimisation.COALESCED,), not_told=(Optimisation.PIPELINED,)
    )
    rounds = (EVOLVED.rounds[0], replace(EVOLVED.rounds[1], aligned=aligned), *EVOLVED.rounds[2:])
    row = population_rows(replace(EVOLVED, rounds=rounds))[1]
    assert row.optimisations == "coalesced; claimed, not told by counts: pipelined"


def test_a_draft_of_an_epoch_changes_who_goes_on():
    digest = EVOLVED.rounds[1].candidate.digest
    pin = Decision(gate="epoch", action=Action.PIN, by="person:ada", edited="r1")
    draft = Epoch(number=2, members=(digest,), decisions=(pin,))
    rows = population_rows(EVOLVED, draft)
    assert [row.member for row in rows] == [False, True, False, False]
    assert [row.pinned for row in rows] == [True, True, False, False]


def test_the_table_marks_members_and_pinned_ones():
    lines = population_text(EVOLVED).splitlines()
    assert lines[0] == ("Epoch 1 of relu; speed against the first kernel, estimated; * goes on, ! pinned")
    assert lines[1].startswith("!   r0    1.00×  first kernel: first")
    assert any(line.startswith("*   r2    1.11×") and "request of r0" in line for line in lines)
    assert any(line.startswith("    r3        -") for line in lines)
    assert "         not fulfilled: pipelined: the only one with tiles" in lines
    assert lines[-1] == "  timed against one another: the only one with tiles"
    restarted = replace(EVOLVED, epochs=(replace(EVOLVED.epochs[0], restarted=True),))
    assert population_text(restarted).splitlines()[-1].startswith("  no gain for some epochs")


def test_speeds_are_measured_on_a_gpu_and_estimated_elsewhere():
    assert speed_source(EVOLVED) == "estimated"
    gpu = replace(EVOLVED.device, kind=DeviceKind.GPU)
    assert speed_source(replace(EVOLVED, device=gpu)) == "measured"
