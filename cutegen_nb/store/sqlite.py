"""Sessions in one SQLite file: a transaction a round, nothing ever rewritten."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.measurement import Measurement
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.store.lock import WriterLock
from cutegen_nb.store.schema import APPLICATION_ID, CREATE, UPGRADES, VERSION

FILE_NAME = "sessions.sqlite"
_BUSY_S = 5.0
_NAMED = 8
"""Sessions that a message names, the newest first."""


class SqliteStore:
    """The sessions of one folder.

    Opened for writing it holds a lock until it is closed; for reading it takes none and sees what is
    committed. Every failure is a StoreError in one sentence.
    """

    def __init__(self, folder: Path, *, writable: bool = True) -> None:
        self.path = folder / FILE_NAME
        self._lock = WriterLock(folder / "sessions.lock")
        with _foreign(self.path):
            self._connection = self._open_writable() if writable else self._open_readable()

    def _open_writable(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = (
                f"cannot make the folder {self.path.parent}: {error.strerror}; choose another with --store"
            )
            raise StoreError(message) from error
        self._lock.acquire()
        try:
            connection = sqlite3.connect(
                # A notebook without a person runs the session in a thread and joins it: one user at a time.
                self.path,
                timeout=_BUSY_S,
                isolation_level=None,
                check_same_thread=False,
            )
            connection.execute("PRAGMA journal_mode = WAL")
            # FULL: a finished round survives a power cut too; there is one every few seconds at most.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            self._prepare(connection)
        except (sqlite3.Error, StoreError):
            self._lock.release()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                message = f"{self.path} is a database of something else; choose another folder with --store"
                raise StoreError(message)
            connection.executescript(
                f"BEGIN; {CREATE} PRAGMA application_id = {APPLICATION_ID}; "
                f"PRAGMA user_version = {VERSION}; COMMIT;"
            )
            return
        self._check_version(version)
        for older in range(version, VERSION):
            connection.executescript(f"BEGIN; {UPGRADES[older]} PRAGMA user_version = {older + 1}; COMMIT;")

    def _check_version(self, version: int) -> None:
        if not 1 <= version <= VERSION:
            message = (
                f"{self.path} has format {version} and this cutegen-nb reads formats up to {VERSION}: "
                "use the version that wrote it, or another --store"
            )
            raise StoreError(message)

    def _open_readable(self) -> sqlite3.Connection:
        message_of_none = (
            f"no sessions in {self.path.parent}: `cutegen-nb demo` makes one, --store looks elsewhere"
        )
        if not self.path.is_file():
            raise StoreError(message_of_none)
        for mode in ("mode=ro", "mode=ro&immutable=1"):
            connection = sqlite3.connect(f"{self.path.resolve().as_uri()}?{mode}", uri=True, timeout=_BUSY_S)
            try:
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            except sqlite3.OperationalError:
                # A read-only folder holds no place for the shared index of WAL: read the file alone.
                connection.close()
                continue
            if version == 0 and not tables:
                connection.close()
                raise StoreError(message_of_none)
            self._check_version(version)
            return connection
        message = f"cannot open {self.path} for reading; check its permissions"
        raise StoreError(message)

    def create(self, session: Session) -> None:
        """Add a session with the rounds and measurements it has, all of it or nothing."""
        head = json.dumps(encode(replace(session, rounds=(), measurements=(), stopped="")))
        row = (
            session.name,
            session.problem.digest,
            session.author,
            session.device.name,
            session.created_at,
            session.stopped,
            head,
        )
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO sessions (name, problem_digest, author, device, created_at, stopped, head) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            for item in session.rounds:
                self._insert_round(session.name, item)
            for measured in session.measurements:
                self._insert_measurement(session.name, measured)

    def append(self, session_name: str, finished: Round) -> None:
        """Add a finished round, whole or not at all."""
        with self._transaction():
            self._insert_round(session_name, finished)

    def absorb(self, session_name: str, measurements: Sequence[Measurement]) -> None:
        """Add what was measured elsewhere, all of it or nothing."""
        with self._transaction():
            for item in measurements:
                self._insert_measurement(session_name, item)

    def _insert_round(self, session_name: str, finished: Round) -> None:
        self._connection.execute(
            "INSERT INTO rounds VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (self._id(session_name), *_columns(finished), json.dumps(encode(finished))),
        )

    def _insert_measurement(self, session_name: str, item: Measurement) -> None:
        self._connection.execute(
            "INSERT INTO measurements (session_id, job, candidate_digest, device, absorbed_at, body) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (
                self._id(session_name),
                item.job,
                item.candidate_digest,
                item.device.name,
                item.absorbed_at,
                json.dumps(encode(item)),
            ),
        )

    def stop(self, session_name: str, reason: str) -> None:
        """Record why a session ended; an empty reason says that it goes on."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE sessions SET stopped = ? WHERE id = ?", (reason, self._id(session_name))
            )

    def load(self, session_name: str) -> Session:
        """Read a session with its rounds."""
        with _foreign(self.path):
            head, stopped = self._connection.execute(
                "SELECT head, stopped FROM sessions WHERE id = ?", (self._id(session_name),)
            ).fetchone()
            bodies = self._connection.execute(
                "SELECT body FROM rounds WHERE session_id = ? ORDER BY number", (self._id(session_name),)
            ).fetchall()
            absorbed = self._absorbed(session_name)
        rounds = tuple(self._value(Round, body, session_name) for (body,) in bodies)
        measurements = tuple(self._value(Measurement, body, session_name) for (body,) in absorbed)
        session: Session = self._value(Session, head, session_name)
        return replace(session, rounds=rounds, measurements=measurements, stopped=stopped)

    def _absorbed(self, session_name: str) -> list[tuple[str]]:
        if self._connection.execute("PRAGMA user_version").fetchone()[0] == 1:
            return []  # a store of before, opened for reading only
        return self._connection.execute(
            "SELECT body FROM measurements WHERE session_id = ? ORDER BY id", (self._id(session_name),)
        ).fetchall()

    def names(self) -> tuple[str, ...]:
        """Names of the sessions, oldest first."""
        with _foreign(self.path):
            rows = self._connection.execute("SELECT name FROM sessions ORDER BY id").fetchall()
        return tuple(name for (name,) in rows)

    def close(self) -> None:
        """End the connection and give the lock back."""
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
        """There is no session of that name: the nearest, and the newest of those that there are."""
        names = self.names()
        known = ", ".join(names[: -_NAMED - 1 : -1]) or "none yet"
        more = f" and {len(names) - _NAMED} older ones" if len(names) > _NAMED else ""
        near = get_close_matches(session_name, names, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        return f"no session {session_name!r} in {self.path}: there is {known}{more}{meant}"

    def _value(self, kind: type[Any], text: str, session_name: str) -> Any:  # noqa: ANN401 - `kind` says which
        try:
            return decode(kind, json.loads(text))
        except (ValueError, TypeError, KeyError) as error:
            message = (
                f"session {session_name!r} in {self.path} cannot be read ({error}); "
                "the rest of the store can: restore a copy of the file, or use another --name"
            )
            raise StoreError(message) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with _foreign(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")


def _columns(finished: Round) -> tuple[int, str, str, str, int, str, str, str, float]:
    candidate, evaluation = finished.candidate, finished.evaluation
    parent = finished.attempts[0].prompt.parent if finished.attempts else None
    last = next((a.evaluation for a in reversed(finished.attempts) if a.evaluation), None)
    shown = evaluation or last
    return (
        finished.number,
        finished.strategy.name if finished.strategy else "",
        shown.label if shown else "",
        finished.comparison.relation.value if finished.comparison else "",
        int(finished.approved),
        candidate.digest if candidate else "",
        parent.digest if parent else "",
        finished.started_at,
        finished.seconds,
    )


@contextmanager
def _foreign(path: Path) -> Iterator[None]:
    """Every error of SQLite as a StoreError that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(_sentence(path, error)) from error


def _sentence(path: Path, error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorname", "") or ""
    if code.startswith(("SQLITE_FULL", "SQLITE_IOERR_WRITE")):
        return f"the disk is full: {path} could not grow ({error}); free space and run the same command again"
    if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return f"cannot write {path} ({error}): choose a folder you may write to with --store"
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"{path} is in use by another program ({error}): close it and run the same command again"
    if code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return f"{path} is not a session store or is damaged ({error}): restore a copy or use another --store"
    if code.startswith("SQLITE_CONSTRAINT"):
        return f"{path} holds this session or round already ({error}): load it again before going on"
    return f"{path} could not be read or written ({error})"
