"""The magics of a population, typed at the gate of an epoch of a real session."""

from __future__ import annotations

import json

import pytest
from notebook_kernels import PROBLEM, Kernel, rows


@pytest.fixture(scope="module")
def waiting(attended: Kernel) -> Kernel:
    """A kernel whose session waits at the end of its first epoch."""
    cell = f"%%cutegen --name evolved --population 2 --epochs 2 --device simulator\n{PROBLEM}"
    ran = attended.run(cell)
    assert ran.status == "ok", ran.error
    for question in ("the prompt waits", "revision r0"):
        assert question in attended.gate()
        attended.run("%cutegen approve")
    said = attended.gate()
    assert "epoch 1 waits for you: approve, pin, drop, request, forbid, budget or stop" in said
    assert "`%cutegen population` shows the members" in said
    return attended


class TestTheGateOfAnEpoch:
    """In order: what is refused changes nothing, each change is confirmed, and approval stores them all."""

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("pin r9", "pin needs an approved revision, not 'r9': r0"),
            ("request make it fast", "a strategy is written as NAME: what to do"),
            ("budget rounds=3", "a budget is given as epochs=N or population=N, not 'rounds=3'"),
            ("forbid", "forbid needs the name of a strategy"),
            ("reject it is slow", "reject is no answer here; epoch 1 waits for you"),
            ("edit", "there is nothing to edit; epoch 1 waits for you"),
        ],
    )
    def test_what_names_nothing_known_is_refused_in_a_sentence(self, waiting: Kernel, line, words):
        ran = waiting.run(f"%cutegen {line}")
        assert words in ran.error
        assert len(ran.error.splitlines()) == 1
        assert "epoch 1 waits for you" in waiting.run("%cutegen status").text

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("pin r0 the plain one", "Epoch 1: "),
            ("request tiles: Keep a tile in shared memory.", "Epoch 1: "),
            ("forbid unrolled", "Epoch 1: "),
            ("budget epochs=3", "Epoch 1: "),
        ],
    )
    def test_each_change_is_confirmed_and_the_gate_stays_open(self, waiting: Kernel, line, said):
        ran = waiting.run(f"%cutegen {line}")
        assert said in ran.text, ran.error
        assert "epoch 1 waits for you" in waiting.gate()

    def test_the_table_shows_the_members_with_the_draft(self, waiting: Kernel):
        shown = waiting.run("%cutegen population")
        assert shown.mime_types == {"text/html", "text/plain"}
        assert "r0" in shown.plain
        assert "pinned" in shown.plain

    def test_approval_stores_every_decision_with_the_person(self, waiting: Kernel):
        waiting.run("%cutegen approve")
        waiting.run("%cutegen stop enough")
        waiting.gate()
        (epoch, *_) = (
            json.loads(body) for body in rows(waiting.folder, "SELECT body FROM epochs ORDER BY number")
        )
        made = epoch["decisions"]
        assert [item["action"] for item in made] == ["pin", "request", "forbid", "budget", "approve"]
        assert (made[0]["edited"], made[0]["reason"]) == ("r0", "the plain one")
        assert made[3]["edited"] == "epochs=3"
        assert all(item["by"].startswith("person:") for item in made)
