"""Schema of the session database, with its version and upgrades."""

from __future__ import annotations

VERSION = 5
"""Version of the schema, raised with every change of the tables."""

APPLICATION_ID = 0x43754744
"""SQLite application id, ``CuGD`` in ASCII, which tells the file from other SQLite databases."""

_TABLES_OF_3 = """
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
"""Statements that create the tables of version 3."""

_EPOCHS = """
CREATE TABLE epochs (
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session_id, number)
) WITHOUT ROWID;
"""
"""Statement that creates the table of a population's epochs, new in version 4."""

_SUMMARIES = """
CREATE TABLE summaries (
    session_id INTEGER PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    rounds INTEGER NOT NULL,
    epochs INTEGER NOT NULL,
    measurements INTEGER NOT NULL,
    body TEXT NOT NULL
);
"""
"""Statement that creates the table of the sessions' summaries, new in version 4. A summary is a cache: its
counts tell whether the session has grown since."""

_INTERMEDIATES = """
CREATE TABLE intermediates (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    body TEXT NOT NULL
);
"""
"""Statement that creates the table of the results of rounds in progress, new in version 5."""

CREATE = _TABLES_OF_3 + _EPOCHS + _SUMMARIES + _INTERMEDIATES
"""Statements that create the tables. `head` is the session without its rounds, epochs and measurements,
`body` a round, an epoch, a measurement, a summary or an intermediate result, all in the format of
core.codec. The other columns identify a row."""

UPGRADES = {
    1: """
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
""",
    # Version 2 repeated parts of `head` and `body` in columns that no query read. The tables are made anew,
    # because SQLite drops a column from 3.35 on only. The old children go first: dropping a table deletes
    # its rows, and with them the rows that refer to them.
    2: """
DROP INDEX measurements_once;
ALTER TABLE sessions RENAME TO old_sessions;
ALTER TABLE rounds RENAME TO old_rounds;
ALTER TABLE measurements RENAME TO old_measurements;
"""  # noqa: S608 - the tables are a constant
    + _TABLES_OF_3
    + """
INSERT INTO sessions SELECT id, name, stopped, head FROM old_sessions;
INSERT INTO rounds SELECT session_id, number, body FROM old_rounds;
INSERT INTO measurements SELECT id, session_id, job, device, body FROM old_measurements;
DROP TABLE old_measurements;
DROP TABLE old_rounds;
DROP TABLE old_sessions;
""",
    3: _EPOCHS + _SUMMARIES,
    4: _INTERMEDIATES,
}
"""Statements that upgrade the tables of a version to the next one."""
