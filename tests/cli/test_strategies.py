"""`cutegen-nb strategies`: list, explanation, ranking for a problem, export and import of records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.cli import main
from cutegen_nb.core.search.knowledge import RecordSource
from cutegen_nb.store.knowledge_base import KnowledgeBase, knowledge_folder
from cutegen_nb.store.knowledge_file import shipped_records
from cutegen_nb.testing import examples

pytestmark = pytest.mark.usefixtures("one_template")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def own():
    """Two records of this machine's sessions, in the knowledge base."""
    first, second, *_ = shipped_records()
    made = tuple(
        replace(
            item,
            source=RecordSource.OWN,
            session="mine",
            session_at="2026-11-20T00:00:00+00:00",
            candidate_digest="a" * 64,
        )
        for item in (first, second)
    )
    assert KnowledgeBase(knowledge_folder()).learn(made) == 2
    return made


def told(capsys, *words: str) -> str:
    assert main(["strategies", *words]) == 0
    return capsys.readouterr().out


def test_the_list_has_a_row_for_each_tried_strategy_and_names_the_others(capsys):
    text = told(capsys)
    heading, *rows = text.partition("\n\n")[0].splitlines()

    assert heading.split() == ["strategy", "effect", "range", "records", "measured", "device", "on"]
    assert len(rows) == len({item.strategy.identity for item in shipped_records()})
    assert "No record yet: " in text
    assert f"{len(shipped_records())} records: {len(shipped_records())} shipped, 0 of this machine's" in text


def test_own_records_are_counted_apart(capsys, own):
    shipped = len(shipped_records())
    text = " ".join(told(capsys).split())

    assert f"{shipped + 2} records: {shipped} shipped, 2 of this machine's sessions, 0 imported" in text


def test_a_class_narrows_the_list(capsys):
    everything = json.loads(told(capsys, "--json"))["strategies"]
    norms = json.loads(told(capsys, "--class", "norm", "--json"))["strategies"]

    assert 0 < len(norms) < len(everything)
    assert all(not item["classes"] or "norm" in item["classes"] or item["records"] for item in norms)
    assert {"name", "identity", "statement", "speedup", "measured", "devices", "records"} <= set(norms[0])


def test_one_strategy_is_explained_with_its_conditions_and_every_record(capsys, own):
    name = own[0].strategy.identity
    text = told(capsys, name)
    number = sum(item.strategy.identity == name for item in (*own, *shipped_records()))

    assert text.startswith(f"{name}: ")
    assert f"{number} record" in text
    assert text.count("\n- ") == number
    assert "session mine" in text
    assert json.loads(told(capsys, name, "--json"))["identity"] == name


def test_a_strategy_without_a_record_says_so(capsys):
    (without, *_) = [item for item in json.loads(told(capsys, "--json"))["strategies"] if not item["records"]]

    assert told(capsys, without["name"]).rstrip().endswith("0 records yet")


def test_records_travel_to_another_machine_and_are_marked_as_imported(capsys, own, monkeypatch):
    assert told(capsys, "--export", "mine.json") == "2 records in mine.json: read it before you pass it on\n"
    assert "class Model" not in Path("mine.json").read_text()
    assert told(capsys, "--import", "mine.json") == "0 new of 2 records of mine.json, marked as imported\n"

    monkeypatch.setenv("CUTEGEN_KNOWLEDGE", "elsewhere")
    found = json.loads(told(capsys, "--import", "mine.json", "--json"))
    assert found == {"file": "mine.json", "records": 2, "new": 2}
    assert json.loads(told(capsys, "--import", "mine.json", "--json"))["new"] == 0
    assert [item.source for item in KnowledgeBase(knowledge_folder()).records()] == [
        RecordSource.IMPORTED
    ] * 2
    assert "0 of this machine's sessions, 2 imported" in " ".join(told(capsys).split())


def test_what_was_imported_is_not_passed_on_as_ones_own(capsys, own, monkeypatch):
    told(capsys, "--export", "mine.json")
    monkeypatch.setenv("CUTEGEN_KNOWLEDGE", "elsewhere")
    told(capsys, "--import", "mine.json")

    assert main(["strategies", "--export", "again.json"]) == 2
    assert "no session of this machine left a record yet in elsewhere" in capsys.readouterr().err
    assert not Path("again.json").exists()


def test_a_file_with_one_bad_record_is_refused_whole(capsys, own):
    told(capsys, "--export", "mine.json")
    whole = json.loads(Path("mine.json").read_text())
    whole["records"][1]["surprise"] = "rm -rf"
    Path("mine.json").write_text(json.dumps(whole))

    assert main(["strategies", "--import", "mine.json"]) == 2
    err = capsys.readouterr().err
    assert "surprise" in err
    assert err.count("\n") == 1
    assert len(KnowledgeBase(knowledge_folder()).records()) == 2


@pytest.mark.slow
def test_strategies_are_ranked_for_a_problem_by_what_won_on_like_ones(capsys, folder):
    (folder / "relu.py").write_text(examples.RELU_SOURCE)
    found = json.loads(told(capsys, "--problem", "relu.py", "--device", "simulator", "--json"))

    assert found["problem"] == "relu"
    expected = [item["expected_speedup"] for item in found["strategies"]]
    assert expected == sorted(expected, reverse=True)
    assert expected[0] > 1
    digests = {item.digest for item in shipped_records()}
    assert all(set(item["records"]) <= digests and item["records"] for item in found["strategies"])
