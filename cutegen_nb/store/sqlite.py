"""Session store in one SQLite file: append-only, with one transaction a round."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cutegen_nb.analysis.history.session_summary import SessionSummary, summarise
from cutegen_nb.core.batch import Measurement
from cutegen_nb.core.codec import collection_paused, decode, encode
from cutegen_nb.core.device import SIMULATED_SUFFIX
from cutegen_nb.core.errors import DamagedSession, StoreError
from cutegen_nb.core.round import Epoch, Round
from cutegen_nb.core.session import Intermediate, Session
from cutegen_nb.store.bundle import PackedSession
from cutegen_nb.store.lock import WriterLock
from cutegen_nb.store.opening import open_readable, open_writable, sqlite_errors

FILE_NAME = "sessions.sqlite"
"""Name of the database file in the store's folder."""
_WITH_MEASUREMENTS, _WITH_EPOCHS = 2, 4
"""Versions of the schema from which these tables exist."""
_WITH_SUMMARIES = 4
"""Version of the schema from which the table of summaries exists."""
_COUNTS = ", ".join(
    f"(SELECT count(*) FROM {table} AS counted WHERE counted.session_id = sessions.id)"  # noqa: S608 - constants
    for table in ("rounds", "epochs", "measurements")
)
_KEPT_SUMMARIES = (
    "SELECT sessions.name, sessions.stopped, summaries.body FROM sessions "  # noqa: S608 - constants
    "JOIN summaries ON summaries.session_id = sessions.id "
    f"WHERE (summaries.rounds, summaries.epochs, summaries.measurements) = ({_COUNTS})"
)
_KEEP_SUMMARY = (
    "INSERT OR REPLACE INTO summaries (session_id, rounds, epochs, measurements, body) "
    "SELECT id, ?, ?, ?, ? FROM sessions WHERE name = ?"
)
_NAMED = 8
"""Number of sessions named in an error message, newest first."""


class SqliteStore:
    """Sessions of one folder.

    A writable store holds a lock until it is closed. A readable store takes no lock and sees committed data.
    Every failure is a StoreError in one sentence.
    """

    def __init__(self, folder: Path, *, writable: bool = True) -> None:
        self.path = folder / FILE_NAME
        self._lock = WriterLock(folder / "sessions.lock")
        self._writable = writable
        with sqlite_errors(self.path):
            self._connection = open_writable(self.path, self._lock) if writable else open_readable(self.path)

    def create(self, session: Session) -> None:
        """Add a session with its rounds, epochs and measurements in one transaction."""
        head = json.dumps(encode(replace(session, rounds=(), epochs=(), measurements=(), stopped="")))
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO sessions (name, stopped, head) VALUES (?, ?, ?)",
                (session.name, session.stopped, head),
            )
            for item in session.rounds:
                self._insert_round(session.name, item)
            for epoch in session.epochs:
                self._insert_epoch(session.name, epoch)
            for measured in session.measurements:
                self._insert_measurement(session.name, measured)
        if session.rounds:
            self._keep([session])

    def append(self, session_name: str, finished: Round) -> None:
        """Add a finished round in one transaction.

        The results kept for it go. Those of an epoch stay until it ends, because its slots run side by side.
        """
        with self._transaction():
            self._insert_round(session_name, finished)
            if finished.slot is None:
                self._forget_intermediates(session_name)

    def amend(self, session_name: str, decided: Round) -> None:
        """Replace a round, at whose gate a person had stopped, by itself with its decision.

        One transaction. The results kept for it go, and the summary, which tells by the number of rounds
        whether it still holds.
        """
        with self._transaction() as connection:
            row = self._id(session_name)
            connection.execute(
                "UPDATE rounds SET body = ? WHERE session_id = ? AND number = ?",
                (json.dumps(encode(decided)), row, decided.number),
            )
            connection.execute("DELETE FROM summaries WHERE session_id = ?", (row,))
            self._forget_intermediates(session_name)

    def append_epoch(self, session_name: str, finished: Epoch) -> None:
        """Add a finished epoch in one transaction; the results kept for its rounds go."""
        with self._transaction():
            self._insert_epoch(session_name, finished)
            self._forget_intermediates(session_name)

    def keep(self, session_name: str, result: Intermediate) -> None:
        """Add a result of a round in progress in one transaction."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO intermediates (session_id, body) VALUES (?, ?)",
                (self._id(session_name), json.dumps(encode(result))),
            )

    def intermediates(self, session_name: str) -> tuple[Intermediate, ...]:
        """Return the results kept for rounds that have not ended, in the order they came.

        A result that cannot be read is left out: its question is asked again.
        """
        with sqlite_errors(self.path):
            rows = self._connection.execute(
                "SELECT body FROM intermediates WHERE session_id = ? ORDER BY id", (self._id(session_name),)
            ).fetchall()
        found: list[Intermediate] = []
        for (body,) in rows:
            with suppress(DamagedSession):
                found.append(self._value(Intermediate, body, session_name))
        return tuple(found)

    def _forget_intermediates(self, session_name: str) -> None:
        self._connection.execute("DELETE FROM intermediates WHERE session_id = ?", (self._id(session_name),))

    def absorb(self, session_name: str, measurements: Sequence[Measurement]) -> None:
        """Add measurements made elsewhere in one transaction."""
        with self._transaction():
            for item in measurements:
                self._insert_measurement(session_name, item)

    def _insert_round(self, session_name: str, finished: Round) -> None:
        self._connection.execute(
            "INSERT INTO rounds (session_id, number, body) VALUES (?, ?, ?)",
            (self._id(session_name), finished.number, json.dumps(encode(finished))),
        )

    def _insert_epoch(self, session_name: str, finished: Epoch) -> None:
        self._connection.execute(
            "INSERT INTO epochs (session_id, number, body) VALUES (?, ?, ?)",
            (self._id(session_name), finished.number, json.dumps(encode(finished))),
        )

    def _insert_measurement(self, session_name: str, item: Measurement) -> None:
        self._connection.execute(
            "INSERT INTO measurements (session_id, job, device, body) VALUES (?, ?, ?, ?)",
            (self._id(session_name), item.job, item.device.name, json.dumps(encode(item))),
        )

    def compare(self, session_name: str, number: int | None) -> None:
        """Record the round that a person compares all others with; None for each one's parent."""
        self._change(session_name, compared_with=number)

    def keep_draft(self, session_name: str, draft: str) -> None:
        """Record what a person has typed and not sent."""
        self._change(session_name, draft=draft)

    def asks(self, session_name: str, author: str, server: str) -> None:
        """Record the author of the rounds to come, and the address of its server; empty without one."""
        self._change(session_name, author=author, server=server)

    def _change(self, session_name: str, **members: str | int | None) -> None:
        with self._transaction() as connection:
            row = self._id(session_name)
            (head,) = connection.execute("SELECT head FROM sessions WHERE id = ?", (row,)).fetchone()
            changed = json.dumps({**json.loads(head), **members})
            connection.execute("UPDATE sessions SET head = ? WHERE id = ?", (changed, row))

    def stop(self, session_name: str, reason: str) -> None:
        """Record the reason for the end of a session; an empty reason marks the session as resumed.

        At its end its summary is kept, so that the next list reads none of its rounds.
        """
        with self._transaction() as connection:
            connection.execute(
                "UPDATE sessions SET stopped = ? WHERE id = ?", (reason, self._id(session_name))
            )
        if reason:
            with suppress(StoreError):
                self._keep([self.load(session_name)])

    def load(self, session_name: str, only: Sequence[int] | None = None) -> Session:
        """Read a session with its rounds, or with those numbered `only`, its epochs and measurements."""
        with sqlite_errors(self.path):
            head, stopped = self._connection.execute(
                "SELECT head, stopped FROM sessions WHERE id = ?", (self._id(session_name),)
            ).fetchone()
            bodies = self._rounds(session_name, only)
            closed = self._epochs(session_name)
            absorbed = self._absorbed(session_name)
        with collection_paused():
            rounds = tuple(self._value(Round, body, session_name) for (body,) in bodies)
            epochs = tuple(self._value(Epoch, body, session_name) for (body,) in closed)
            measurements = tuple(self._value(Measurement, body, session_name) for (body,) in absorbed)
        session: Session = self._value(Session, head, session_name)
        return replace(session, rounds=rounds, epochs=epochs, measurements=measurements, stopped=stopped)

    def packed(self, session_name: str) -> PackedSession:
        """Return a session as the text of a bundle, put together from the stored texts.

        No round is decoded, which takes most of the time of reading. Raises StoreError.
        """
        with sqlite_errors(self.path):
            head, stopped = self._connection.execute(
                "SELECT head, stopped FROM sessions WHERE id = ?", (self._id(session_name),)
            ).fetchone()
            stored = {
                "rounds": [body for (body,) in self._rounds(session_name, None)],
                "epochs": [body for (body,) in self._epochs(session_name)],
                "measurements": [body for (body,) in self._absorbed(session_name)],
            }
        with self._readable(session_name), collection_paused():
            members = {**json.loads(head), "stopped": stopped, "server": ""}
            kernels = dict(filter(None, (_last_source(json.loads(body)) for body in stored["rounds"])))
        texts = {name: json.dumps(value) for name, value in members.items()}
        texts |= {name: f"[{', '.join(bodies)}]" for name, bodies in stored.items()}
        return PackedSession(
            name=session_name,
            text=f"{{{', '.join(f'{json.dumps(name)}: {text}' for name, text in texts.items())}}}",
            problem=members["problem"]["source"],
            kernels=kernels,
            rounds=len(stored["rounds"]),
        )

    def _rounds(self, session_name: str, only: Sequence[int] | None) -> list[tuple[str]]:
        query, values = "SELECT body FROM rounds WHERE session_id = ?", [self._id(session_name)]
        if only is not None:
            query += f" AND number IN ({', '.join('?' * len(only))})"
            values += only
        return self._connection.execute(f"{query} ORDER BY number", values).fetchall()

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])

    def _epochs(self, session_name: str) -> list[tuple[str]]:
        if self._version() < _WITH_EPOCHS:
            return []  # a store of before, opened for reading only
        return self._connection.execute(
            "SELECT body FROM epochs WHERE session_id = ? ORDER BY number", (self._id(session_name),)
        ).fetchall()

    def _absorbed(self, session_name: str) -> list[tuple[str]]:
        if self._version() < _WITH_MEASUREMENTS:
            return []
        return self._connection.execute(
            "SELECT body FROM measurements WHERE session_id = ? ORDER BY id", (self._id(session_name),)
        ).fetchall()

    def names(self) -> tuple[str, ...]:
        """Names of the sessions, oldest first."""
        with sqlite_errors(self.path):
            rows = self._connection.execute("SELECT name FROM sessions ORDER BY id").fetchall()
        return tuple(name for (name,) in rows)

    def summaries(self) -> tuple[tuple[SessionSummary, ...], dict[str, str]]:
        """Return a summary of each readable session, oldest first, and the errors of the others by name.

        A session that has grown since its summary was kept is read whole, and its new summary is kept where
        the store can be written.
        """
        with sqlite_errors(self.path):
            kept = self._kept_summaries()
        found: list[SessionSummary] = []
        damaged: dict[str, str] = {}
        read: list[Session] = []
        for name in self.names():
            if name in kept:
                found.append(kept[name])
                continue
            try:
                read.append(self.load(name))
            except StoreError as error:
                damaged[name] = str(error)
            else:
                found.append(summarise(read[-1]))
        self._keep(read)
        return tuple(found), damaged

    def _kept_summaries(self) -> dict[str, SessionSummary]:
        """Return the summaries that still hold, by name."""
        if self._version() < _WITH_SUMMARIES:
            return {}
        rows = self._connection.execute(_KEPT_SUMMARIES).fetchall()
        kept = {}
        for name, stopped, body in rows:
            try:
                summary: SessionSummary = self._value(SessionSummary, body, name)
            except DamagedSession:
                continue  # it is made again
            if summary.device.endswith(SIMULATED_SUFFIX):
                continue  # of a version that named the simulator by the GPU whose roofs it has
            kept[name] = replace(summary, stopped=stopped)
        return kept

    def _keep(self, read: Sequence[Session]) -> None:
        """Keep the summaries of sessions, unless the store is of before or cannot be written now."""
        if not read or self._version() < _WITH_SUMMARIES:
            return
        with suppress(StoreError):
            if self._writable:
                self._write_summaries(read)
                return
            with SqliteStore(self.path.parent) as writable:
                writable._write_summaries(read)

    def _write_summaries(self, read: Sequence[Session]) -> None:
        with self._transaction() as connection:
            for item in read:
                # The counts of what was read, not those of the store: the session may have grown since.
                counts = (len(item.rounds), len(item.epochs), len(item.measurements))
                body = json.dumps(encode(summarise(item)))
                connection.execute(_KEEP_SUMMARY, (*counts, body, item.name))

    def close(self) -> None:
        """Close the connection and release the lock."""
        self._connection.close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _id(self, session_name: str) -> int:
        row = self._connection.execute("SELECT id FROM sessions WHERE name = ?", (session_name,)).fetchone()
        if row is None:
            raise StoreError(self._unknown(session_name))
        return int(row[0])

    def _unknown(self, session_name: str) -> str:
        """Message for an unknown name, with the nearest name and the newest sessions."""
        names = self.names()
        known = ", ".join(names[: -_NAMED - 1 : -1]) or "none yet"
        left = len(names) - _NAMED
        more = f" and {left} older one{'s' if left > 1 else ''}" if left > 0 else ""
        near = get_close_matches(session_name, names, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        return f"no session {session_name!r} in {self.path}: there is {known}{more}{meant}"

    def _value(self, kind: type[Any], text: str, session_name: str) -> Any:  # noqa: ANN401 - `kind` says which
        with self._readable(session_name):
            return decode(kind, json.loads(text))

    @contextmanager
    def _readable(self, session_name: str) -> Iterator[None]:
        """Turn what a damaged text raises into DamagedSession."""
        try:
            yield
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            message = (
                f"session {session_name!r} in {self.path} cannot be read ({error}); "
                "the rest of the store can: restore a copy of the file, or use another --name"
            )
            raise DamagedSession(message) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with sqlite_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")


def _last_source(body: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return revision and source of the last candidate of a stored round; None without one."""
    candidates = [attempt["candidate"] for attempt in body["attempts"] if attempt.get("candidate")]
    return (f"r{body['number']}", candidates[-1]["source"]) if candidates else None
