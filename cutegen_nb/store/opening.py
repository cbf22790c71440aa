"""Opening of the session store's database, and the sentence for each error of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cutegen_nb.core.errors import StoreError
from cutegen_nb.store.lock import WriterLock
from cutegen_nb.store.schema import APPLICATION_ID, CREATE, UPGRADES, VERSION

_BUSY_S = 5.0
"""Seconds to wait for another process's transaction."""


def open_writable(path: Path, lock: WriterLock) -> sqlite3.Connection:
    """Acquire `lock` and open the database for writing: made if missing, upgraded if older.

    Raises:
        StoreError: the folder cannot be made, another process writes, or the file is something else.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot make the folder {path.parent}: {error.strerror}; choose another with --store"
        raise StoreError(message) from error
    lock.acquire()
    try:
        connection = sqlite3.connect(
            # A notebook without a person runs the session in another thread and joins it: one user at a
            # time.
            path,
            timeout=_BUSY_S,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute("PRAGMA journal_mode = WAL")
        # FULL: a finished round survives a power cut too; a round ends every few seconds at most.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        _prepare(path, connection)
    except (sqlite3.Error, StoreError):
        lock.release()
        raise
    return connection


def _prepare(path: Path, connection: sqlite3.Connection) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            message = f"{path} is a database of something else; choose another folder with --store"
            raise StoreError(message)
        connection.executescript(
            f"BEGIN; {CREATE} PRAGMA application_id = {APPLICATION_ID}; "
            f"PRAGMA user_version = {VERSION}; COMMIT;"
        )
        return
    _check_version(path, version)
    for older in range(version, VERSION):
        connection.executescript(f"BEGIN; {UPGRADES[older]} PRAGMA user_version = {older + 1}; COMMIT;")


def _check_version(path: Path, version: int) -> None:
    if not 1 <= version <= VERSION:
        message = (
            f"{path} has format {version} and this cutegen-nb reads formats up to {VERSION}: "
            "use the version that wrote it, or another --store"
        )
        raise StoreError(message)


def open_readable(path: Path) -> sqlite3.Connection:
    """Open the database for reading only, without a lock.

    Raises:
        StoreError: there is no session, or the file has a format that this version does not know.
    """
    message_of_none = f"no sessions in {path.parent}: `cutegen-nb demo` makes one, --store looks elsewhere"
    if not path.is_file():
        raise StoreError(message_of_none)
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=_BUSY_S)
        try:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        except sqlite3.OperationalError:
            # In a read-only folder WAL cannot create its shared index: open the file as immutable.
            connection.close()
            continue
        if version == 0 and not tables:
            connection.close()
            raise StoreError(message_of_none)
        _check_version(path, version)
        return connection
    message = f"cannot open {path} for reading; check its permissions"
    raise StoreError(message)


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Convert every SQLite error to a StoreError that names the next step."""
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
