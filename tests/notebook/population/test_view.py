"""A population in the panel: kernels, epochs, the gate of an epoch, and the slots that run."""

from __future__ import annotations

import json
from dataclasses import replace

from cutegen_nb.core.round import Action, Decision
from cutegen_nb.core.search.population import MoveKind
from cutegen_nb.loop.population.gate import draft_epoch
from cutegen_nb.loop.population.slot_progress import SlotProgress, SlotState
from cutegen_nb.notebook.approver import Gate
from cutegen_nb.notebook.population.view import (
    epoch_sentence,
    population_view,
    slots_text,
    slots_view,
    used_words,
)
from cutegen_nb.notebook.view import Live, overview
from cutegen_nb.testing import examples

WHOLE = examples.evolved_session()
OPEN = replace(WHOLE, epochs=())


def gate(*decisions: Decision) -> Gate:
    return Gate(kind="epoch", session=OPEN, draft=draft_epoch(OPEN, (), decisions))


def decided(action: Action, edited: str) -> Decision:
    return Decision(gate="epoch", action=action, by="person:ada", edited=edited)


SLOTS = (
    SlotProgress(epoch=2, number=1, move=MoveKind.EXTEND, base=1, other=None, strategy="vectorise"),
    SlotProgress(
        epoch=2,
        number=2,
        move=MoveKind.CROSS,
        base=1,
        other=2,
        strategy="",
        state=SlotState.RUNNING,
        doing="compiling",
        started_at="2026-01-01T00:00:00+00:00",
    ),
    SlotProgress(
        epoch=2,
        number=3,
        move=MoveKind.EXTEND,
        base=0,
        other=None,
        strategy="",
        state=SlotState.DONE,
        round=5,
    ),
)


def test_a_chain_has_no_population():
    assert population_view(examples.session_of(), None) == {}
    assert population_view(None, None) == {}


def test_each_kernel_is_a_row_with_its_descent_and_what_may_be_done_with_it():
    view = population_view(OPEN, gate())
    assert json.loads(json.dumps(view))
    rows = {row["label"]: row for row in view["rows"]}
    assert rows["r1"]["epoch"] == 1
    assert rows["r1"]["descent"] == "extend of r0"
    assert rows["r1"]["corrections"], "what the counts deny of a claim stands beside it"
    members = {label for label, row in rows.items() if row["member"]}
    assert len(members) == 2
    assert {label for label, row in rows.items() if row["can_drop"]} == members
    assert rows["r3"]["can_pin"] is False, "it gave no kernel"
    assert [label for label, row in rows.items() if row["best"]] == [f"r{OPEN.best.number}"]


def test_the_gate_shows_what_was_decided_so_far():
    view = population_view(
        OPEN,
        gate(
            decided(Action.PIN, "r0"),
            decided(Action.FORBID, "coalesce"),
            decided(Action.BUDGET, "epochs=7"),
        ),
    )
    assert view["gate"]["epochs"] == 7
    assert view["gate"]["forbidden"] == ["coalesce"]
    assert "coalesce" not in view["gate"]["strategies"]
    assert {row["label"]: row["pinned"] for row in view["rows"]}["r0"] is True
    assert len(view["epochs"][-1]["said"]) == 3


def test_the_only_member_left_cannot_be_dropped():
    view = population_view(OPEN, gate(decided(Action.DROP, "r1"), decided(Action.DROP, "r2")))
    assert [row["label"] for row in view["rows"] if row["member"]] == ["r0"]
    assert [row["label"] for row in view["rows"] if row["can_drop"]] == []


def test_finished_epochs_are_told_without_a_gate():
    view = population_view(WHOLE, None)
    assert view["gate"] is None
    (epoch,) = view["epochs"]
    assert epoch["number"] == 1
    assert any(words.startswith("timed in the same turns: ") for words in epoch["said"])


def test_what_authors_and_persons_wrote_is_made_visible():
    view = population_view(examples.evolved_session(words="\u202eevil"), None)
    assert "\u202e" not in json.dumps(view, ensure_ascii=False)


def test_running_slots_are_told_with_their_state():
    assert [(item["state"], item["from"], item["revision"]) for item in slots_view(SLOTS)] == [
        ("planned", "r1", ""),
        ("running", "r1 and r2", ""),
        ("done", "r0", "r5"),
    ]
    assert [item["since"] > 0 for item in slots_view(SLOTS)] == [False, True, False]
    assert slots_text(SLOTS).splitlines() == [
        "epoch 2, 1 of 3 slots done",
        "  slot 1, extend of r1, vectorise: waits for a free worker",
        "  slot 2, cross of r1 and r2: compiling",
        "  slot 3, extend of r0: done, r5",
    ]
    assert epoch_sentence(None, SLOTS) == "Working on epoch 2, 1 of 3 slots done:"
    assert epoch_sentence(gate(), ()) == "Epoch 1 waits for you: who goes on?"


def test_the_overview_counts_rounds_and_epochs_and_lists_no_pending_round():
    live = Live(gate=gate())
    shown = overview(OPEN, live, None)
    assert shown["session"]["used"] == used_words(OPEN)
    assert used_words(WHOLE) == "3 of at most 9 rounds, 1 of at most 4 epochs of 2 slots"
    assert [row["revision"] for row in shown["rounds"]] == ["r0", "r1", "r2", "r3"]
    assert shown["gate"] is None
    assert live.question(OPEN) == "epoch:1:0"
    assert Live(gate=gate(decided(Action.PIN, "r0"))).question(OPEN) == "epoch:1:1"
