"""Stores of older formats: read as they are, upgraded when written, and never left in between."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.analysis.history.session_summary import summarise
from cutegen_nb.core.batch import Measurement
from cutegen_nb.core.codec import encode
from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.round import Epoch
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.store.schema import APPLICATION_ID, VERSION
from cutegen_nb.store.sqlite import FILE_NAME, SqliteStore
from cutegen_nb.testing import examples

ROOT = Path(__file__).parents[2]

TABLES_OF_1 = """
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    problem_digest TEXT NOT NULL,
    author TEXT NOT NULL,
    device TEXT NOT NULL,
    created_at TEXT NOT NULL,
    stopped TEXT NOT NULL DEFAULT '',
    head TEXT NOT NULL
);
CREATE TABLE rounds (
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    strategy TEXT NOT NULL,
    verdict TEXT NOT NULL,
    relation TEXT NOT NULL,
    approved INTEGER NOT NULL,
    candidate_digest TEXT NOT NULL,
    parent_digest TEXT NOT NULL,
    started_at TEXT NOT NULL,
    seconds REAL NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session_id, number)
) WITHOUT ROWID;
CREATE INDEX rounds_by_candidate ON rounds (candidate_digest);
CREATE INDEX rounds_by_verdict ON rounds (verdict, strategy);
"""
MEASUREMENTS_OF_2 = """
CREATE TABLE measurements (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    job TEXT NOT NULL,
    candidate_digest TEXT NOT NULL,
    device TEXT NOT NULL,
    absorbed_at TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE UNIQUE INDEX measurements_once ON measurements (session_id, job, device);
"""
TABLES_OF_3 = """
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    stopped TEXT NOT NULL DEFAULT '',
    head TEXT NOT NULL
);
CREATE TABLE rounds (
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session_id, number)
) WITHOUT ROWID;
CREATE TABLE measurements (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    job TEXT NOT NULL,
    device TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE UNIQUE INDEX measurements_once ON measurements (session_id, job, device);
"""
TABLES = {1: TABLES_OF_1, 2: TABLES_OF_1 + MEASUREMENTS_OF_2, 3: TABLES_OF_3}
"""Tables as the versions of this package that wrote them made them."""

SESSION = replace(examples.session_of(Relation.FIRST, Relation.LESS_WORK), stopped="enough")
EPOCH = Epoch(number=1, members=("a", "b"), restarted=True, best="a")


def measured(job: str = "job") -> Measurement:
    return Measurement(
        job=job,
        candidate_digest=SESSION.rounds[1].candidate.digest,
        evaluation=examples.passed(10),
        device=examples.simulated_device(),
        comparison=Comparison(relation=Relation.FIRST, reason="."),
        measured_at="2026-01-01T00:00:00+00:00",
        absorbed_at="2026-01-02T00:00:00+00:00",
    )


def as_written(value, *later: str) -> str:
    """JSON of a value without the fields that came later."""
    data = encode(value)
    for name in later:
        del data[name]
    return json.dumps(data)


def write_old(folder: Path, version: int) -> Path:
    """A store of an older version with one session, its rounds and, from version 2 on, a measurement."""
    path = folder / FILE_NAME
    head = as_written(
        replace(SESSION, rounds=(), stopped=""), "epochs", "plan", "environment", "measurements"
    )
    bodies = [as_written(item, "slot", "aligned", "gpu_s", "chosen_because") for item in SESSION.rounds]
    with sqlite3.connect(path) as old:
        old.executescript(f"PRAGMA journal_mode = WAL; {TABLES[version]}")
        old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        old.execute(f"PRAGMA user_version = {version}")
        if version < 3:
            old.execute("INSERT INTO sessions VALUES (7, 'relu', 'p', 'a', 'd', '', 'enough', ?)", (head,))
            for number, body in enumerate(bodies):
                old.execute(
                    "INSERT INTO rounds VALUES (7, ?, 's', 'PASSED', '', 1, 'c', '', '', 1.5, ?)",
                    (number, body),
                )
        else:
            old.execute("INSERT INTO sessions VALUES (7, 'relu', 'enough', ?)", (head,))
            old.executemany("INSERT INTO rounds VALUES (7, ?, ?)", enumerate(bodies))
        device, body = examples.simulated_device().name, as_written(measured())
        if version == 2:
            old.execute("INSERT INTO measurements VALUES (3, 7, 'job', 'c', ?, '', ?)", (device, body))
        if version == 3:
            old.execute("INSERT INTO measurements VALUES (3, 7, 'job', ?, ?)", (device, body))
    old.close()
    return path


def expected(version: int):
    return replace(SESSION, measurements=(measured(),) if version > 1 else ())


def format_of(path: Path) -> tuple[int, dict[str, str]]:
    """Version of a store, and the statement of each of its tables and indices."""
    connection = sqlite3.connect(path)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    made = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    connection.close()
    return version, {name: " ".join(sql.split()).replace('"', "") for name, sql in made}


@pytest.mark.parametrize("version", TABLES)
def test_an_older_store_opened_for_reading_stays_as_it_is(tmp_path, version):
    path = write_old(tmp_path, version)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with SqliteStore(tmp_path, writable=False) as store:
        assert store.load("relu") == expected(version)
        assert store.summaries() == ((summarise(expected(version)),), {})
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert format_of(path)[0] == version


@pytest.mark.parametrize("version", TABLES)
def test_an_older_store_is_upgraded_when_written_and_loses_nothing(tmp_path, version):
    path = write_old(tmp_path, version)
    (tmp_path / "new").mkdir()
    SqliteStore(tmp_path / "new").close()
    with SqliteStore(tmp_path) as store:
        assert store.load("relu") == expected(version)
        store.append("relu", examples.finished_round(2))
        store.append_epoch("relu", EPOCH)
        store.absorb("relu", [measured("later")])
    assert format_of(path) == format_of(tmp_path / "new" / FILE_NAME)
    assert format_of(path)[0] == VERSION
    with SqliteStore(tmp_path, writable=False) as store:
        found = store.load("relu")
    assert found.rounds == (*SESSION.rounds, examples.finished_round(2))
    assert found.epochs == (EPOCH,)
    assert found.measurements == (*expected(version).measurements, measured("later"))


def test_an_upgrade_that_fails_leaves_the_older_format_readable(tmp_path):
    path = write_old(tmp_path, 2)
    with sqlite3.connect(path) as old:
        old.execute("CREATE TABLE old_rounds (x)")
    before = format_of(path)
    with pytest.raises(StoreError, match="old_rounds"):
        SqliteStore(tmp_path)
    assert format_of(path) == before
    with SqliteStore(tmp_path, writable=False) as store:
        assert store.load("relu") == expected(2)


KILLED = """
import os, signal, sqlite3
from pathlib import Path
from cutegen_nb.store import schema
from cutegen_nb.store.sqlite import SqliteStore

connect = sqlite3.connect
def connect_and_add(*given, **named):
    connection = connect(*given, **named)
    connection.create_function("killed", 0, lambda: os.kill(os.getpid(), signal.SIGKILL))
    return connection
sqlite3.connect = connect_and_add
schema.UPGRADES[2] += "SELECT killed();"
SqliteStore(Path({folder!r}))
"""


def test_kill_9_in_the_middle_of_an_upgrade_leaves_the_older_format(tmp_path):
    path = write_old(tmp_path, 2)
    done = subprocess.run(
        [sys.executable, "-c", KILLED.format(folder=str(tmp_path))],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL
    assert format_of(path) == (2, format_of(path)[1])
    assert "old_sessions" not in format_of(path)[1]
    with SqliteStore(tmp_path) as store:
        assert store.load("relu") == expected(2)


def test_the_tables_hold_only_what_identifies_a_row_and_its_body(tmp_path):
    SqliteStore(tmp_path).close()
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    columns = {
        table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        for table in ("sessions", "rounds", "epochs", "measurements")
    }
    connection.close()
    assert columns == {
        "sessions": ["id", "name", "stopped", "head"],
        "rounds": ["session_id", "number", "body"],
        "epochs": ["session_id", "number", "body"],
        "measurements": ["id", "session_id", "job", "device", "body"],
    }
