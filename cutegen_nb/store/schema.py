"""Tables of the session store, and the version they have."""

from __future__ import annotations

VERSION = 2
"""Raised with every change of the tables."""

APPLICATION_ID = 0x43754744
"""``CuGD``: tells our files from other SQLite files."""

_MEASUREMENTS = """
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

CREATE = (
    """
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
    + _MEASUREMENTS
)
"""`head` is the session without its rounds, `body` a round, both as core.codec writes them; the other
columns repeat parts of them so that they can be searched."""

UPGRADES = {1: _MEASUREMENTS}
"""What makes tables of an older version those of the next one."""
