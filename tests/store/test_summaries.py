from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from cutegen_nb.analysis.history.session_summary import summarise
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.round import Action, Attempt, Decision, Prompt, Round
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples


def session(name: str) -> Session:
    return Session(
        name=name,
        problem=examples.relu_problem(name),
        facts=examples.relu_facts(),
        device=examples.simulated_device(),
        author="scripted",
        budget=Budget(rounds=3, wall_s=60.0),
        created_at="2026-01-01T00:00:00+00:00",
    )


def approved(number: int) -> Round:
    candidate = Candidate(source=examples.kernel_source(str(number)), author="scripted")
    attempt = Attempt(
        purpose="optimise",
        prompt=Prompt(system="s", user="u", digest="d"),
        reply=None,
        candidate=candidate,
        evaluation=examples.passed(100 - number),
    )
    return Round(
        number=number,
        stage=Stage.STRUCTURE,
        strategy=None,
        attempts=(attempt,),
        comparison=Comparison(relation=Relation.LESS_WORK, reason="fewer", against="d"),
        decisions=(Decision(gate="revision", action=Action.APPROVE, by="policy:auto"),),
        started_at="2026-01-01T00:00:00+00:00",
        seconds=1.5,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with SqliteStore(tmp_path) as store:
        for name in ("first", "second"):
            store.create(session(name))
            store.append(name, approved(0))
    return tmp_path


def summaries(folder: Path):
    with SqliteStore(folder, writable=False) as store:
        return store.summaries()


def spoil_rounds(folder: Path) -> None:
    """Make every round unreadable, so that a list which reads rounds fails."""
    with sqlite3.connect(folder / "sessions.sqlite") as connection:
        connection.execute("UPDATE rounds SET body = 'no JSON'")


def test_a_list_shows_each_session_as_it_is_whole(folder):
    with SqliteStore(folder, writable=False) as store:
        whole = tuple(summarise(store.load(name)) for name in store.names())
    assert summaries(folder) == (whole, {})
    assert [(item.name, item.rounds, item.best, item.epochs) for item in whole] == [
        ("first", 1, 0, None),
        ("second", 1, 0, None),
    ]


def test_a_second_list_reads_no_round(folder):
    first = summaries(folder)
    spoil_rounds(folder)
    assert summaries(folder) == first


def test_a_session_that_has_grown_is_summarised_again(folder):
    summaries(folder)
    with SqliteStore(folder) as store:
        store.append("first", approved(1))
        store.stop("first", "enough")
    grown, other = summaries(folder)[0]
    assert (grown.rounds, grown.best, grown.stopped) == (2, 1, "enough")
    assert (other.rounds, other.stopped) == (1, "")


def test_a_reason_for_the_end_is_shown_without_reading_the_rounds(folder):
    summaries(folder)
    with SqliteStore(folder) as store:
        store.stop("second", "out of rounds")
    spoil_rounds(folder)
    assert [item.stopped for item in summaries(folder)[0]] == ["", "out of rounds"]


def test_a_list_beside_a_running_session_is_right_and_keeps_nothing(folder):
    with SqliteStore(folder):  # holds the writer's lock
        found, damaged = summaries(folder)
    assert [item.name for item in found] == ["first", "second"]
    assert not damaged
    with sqlite3.connect(folder / "sessions.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM summaries").fetchone() == (0,)


def test_a_session_that_grows_while_a_list_is_made_is_summarised_again(folder, monkeypatch):
    load = SqliteStore.load

    def load_and_grow(store, name):
        found = load(store, name)
        if name == "first" and len(found.rounds) == 1:
            with SqliteStore(folder) as other:
                other.append("first", approved(1))
        return found

    monkeypatch.setattr(SqliteStore, "load", load_and_grow)
    assert [item.rounds for item in summaries(folder)[0]] == [1, 1]
    assert [item.rounds for item in summaries(folder)[0]] == [2, 1]


def test_a_damaged_session_is_named_and_hides_no_other(folder):
    with sqlite3.connect(folder / "sessions.sqlite") as connection:
        connection.execute("UPDATE rounds SET body = 'no JSON' WHERE session_id = 1")
    found, damaged = summaries(folder)
    assert [item.name for item in found] == ["second"]
    assert "session 'first'" in damaged["first"]


def test_an_unreadable_summary_is_made_again(folder):
    before = summaries(folder)
    with sqlite3.connect(folder / "sessions.sqlite") as connection:
        connection.execute("UPDATE summaries SET body = '{}'")
    assert summaries(folder) == before


def test_a_store_of_an_older_format_is_listed_and_left_as_it_is(folder):
    before = summaries(folder)
    with sqlite3.connect(folder / "sessions.sqlite") as connection:
        connection.executescript(
            "DROP TABLE intermediates; DROP TABLE summaries; DROP TABLE epochs; PRAGMA user_version = 3;"
        )
    assert summaries(folder) == before
    with sqlite3.connect(folder / "sessions.sqlite") as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
    with SqliteStore(folder) as store:
        assert store.summaries() == before


def test_an_ended_session_is_listed_without_reading_a_round(folder):
    with SqliteStore(folder) as store:
        store.stop("first", "out of rounds")
        store.stop("second", "out of rounds")
    spoil_rounds(folder)
    found, damaged = summaries(folder)
    assert [item.rounds for item in found] == [1, 1]
    assert not damaged


def test_an_imported_session_is_listed_without_reading_a_round(tmp_path):
    with SqliteStore(tmp_path) as store:
        store.create(examples.session_of(Relation.FIRST, Relation.LESS_WORK))
    spoil_rounds(tmp_path)
    assert [item.best for item in summaries(tmp_path)[0]] == [1]


def test_some_rounds_are_read_without_the_others(tmp_path):
    whole = examples.session_of(Relation.FIRST, Relation.LESS_WORK, Relation.MORE_WORK)
    with SqliteStore(tmp_path) as store:
        store.create(whole)
        with sqlite3.connect(tmp_path / "sessions.sqlite") as connection:
            connection.execute("UPDATE rounds SET body = 'no JSON' WHERE number = 1")
        found = store.load("relu", (0, 2))
    assert found.rounds == (whole.rounds[0], whole.rounds[2])


def test_a_summary_of_a_version_that_named_the_simulator_by_its_gpu_is_made_again(folder):
    whole = summaries(folder)
    with sqlite3.connect(folder / "sessions.sqlite") as connection:
        connection.execute(
            "UPDATE summaries SET body = replace(body, 'simulator (sm_80)', 'A100 (simulated)')"
        )
    assert summaries(folder) == whole
    assert {item.device for item in whole[0]} == {"simulator (sm_80)"}
