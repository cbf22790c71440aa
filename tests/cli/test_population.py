"""`cutegen-nb population`: kernels and epochs of a stored session, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutegen_nb.cli import main
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """A folder whose store holds a population and a chain."""
    monkeypatch.chdir(tmp_path)
    with SqliteStore(Path(".cutegen")) as opened:
        opened.create(examples.evolved_session())
        opened.create(examples.session_of(Relation.FIRST, name="chain"))


def told(capsys, *words: str) -> str:
    assert main([*words]) == 0
    return capsys.readouterr().out


def test_each_kernel_has_a_row_with_its_descent_and_each_epoch_its_decisions(capsys):
    lines = told(capsys, "population", "relu").splitlines()
    rows = {line.split()[0]: line.split() for line in lines[2:6]}

    assert rows["r0"][1] == "!", "pinned"
    assert rows["r2"][1:5] == ["★*", "1", "request", "r0"]
    assert rows["r3"][-3:] == ["candidate", "–", "–"]
    assert "Epoch 1: r2, r0 go on, the best at 1.11×." in lines
    assert "  timed in the same turns: r2 against r1: the only one with tiles" in lines
    assert "  ada pinned r0: “the only one with tiles”" in lines
    assert "r1 does not fulfil: pipelined: the only one with tiles" in lines


def test_json_has_the_same_kernels_and_epochs(capsys):
    found = json.loads(told(capsys, "population", "relu", "--json"))

    assert set(found) == {"session", "speed", "zone", "kernels", "epochs", "stopped", "end"}
    assert [item["number"] for item in found["kernels"]] == [0, 1, 2, 3]
    assert [item["move"] for item in found["kernels"]] == ["", "extend", "request", "invent"]
    (epoch,) = found["epochs"]
    assert (epoch["epoch"], epoch["members"]) == (1, ["r2", "r0"])
    assert [one["action"] for one in epoch["decisions"]] == ["pin", "request", "approve"]
    assert '"_"' not in json.dumps(found)


def test_a_chain_is_one_sentence_and_an_empty_list_of_epochs(capsys):
    assert told(capsys, "population", "chain") == (
        "chain is a chain of rounds: `--population N` evolves several kernels side by side.\n"
    )
    assert json.loads(told(capsys, "population", "chain", "--json"))["epochs"] == []


def test_the_list_of_sessions_has_a_column_of_epochs(capsys):
    heading, *rows = told(capsys, "sessions").splitlines()
    place = heading.index("epochs")

    assert {row.split()[0]: row[place:].split()[0] for row in rows} == {"relu": "1", "chain": "-"}
    by_name = {item["session"]: item["epochs"] for item in json.loads(told(capsys, "sessions", "--json"))}
    assert by_name == {"relu": 1, "chain": None}
