"""Knowledge base in one SQLite file of the user's data folder, shared by all sessions of a machine.

It lies beside no session: what one project's sessions measured serves those of another. Nothing sends it
anywhere.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.search.knowledge import StrategyRecord

FILE_NAME = "knowledge.sqlite"
"""Name of the database file in its folder."""
VERSION = 1
"""Version of the table, raised with every change."""
APPLICATION_ID = 0x4375474B
"""SQLite application id, ``CuGK`` in ASCII, which tells the file from other SQLite databases."""
_BUSY_S = 10.0
"""Seconds to wait for another process's transaction, which takes milliseconds."""
_CREATE = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS strategies (
    digest TEXT PRIMARY KEY,
    recorded_at TEXT NOT NULL,
    body TEXT NOT NULL
) WITHOUT ROWID;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
COMMIT;
"""
"""Statements that create the table. `body` is a `StrategyRecord` in the format of core.codec; it holds the
source of the record."""
_KEEP = """
INSERT INTO strategies (digest, recorded_at, body) VALUES (?, ?, ?)
ON CONFLICT (digest) DO UPDATE SET recorded_at = excluded.recorded_at, body = excluded.body
WHERE excluded.recorded_at > strategies.recorded_at
"""
"""Statement that adds a record, or replaces the same one by a newer time of the same kernels."""


def knowledge_folder() -> Path:
    """Folder of the knowledge base: ``$CUTEGEN_KNOWLEDGE``, or ``cutegen_nb`` in the user's data folder.

    The data folder is ``$XDG_DATA_HOME``, or ``~/.local/share`` (XDG Base Directory Specification).
    """
    given = os.environ.get("CUTEGEN_KNOWLEDGE", "")
    if given:
        return Path(given).expanduser()
    folder = os.environ.get("XDG_DATA_HOME", "")
    return (Path(folder) if folder else Path("~/.local/share").expanduser()) / "cutegen_nb"


class KnowledgeBase:
    """Records of the strategies that sessions tried, each once.

    A call opens the file, does its work in one transaction and closes the file, so that several processes may
    use it at once. Every failure is a StoreError in one sentence.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME

    def learn(self, records: Sequence[StrategyRecord]) -> int:
        """Add records; return the number of those that were new. Raises StoreError.

        The same kernels timed again replace their record if they are newer.
        """
        if not records:
            return 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"cannot make the folder {self.path.parent}: {error.strerror or error}"
            ) from error
        rows = [(item.digest, item.recorded_at, json.dumps(encode(item))) for item in records]
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            before = _size(connection)
            connection.executemany(_KEEP, rows)
            added = _size(connection) - before
            connection.execute("COMMIT")
        return added

    def records(self) -> tuple[StrategyRecord, ...]:
        """Return every readable record, oldest first; none where there is no file. Raises StoreError.

        A record that this version cannot read is left out: another version wrote it.
        """
        if not self.path.is_file():
            return ()
        with self._open() as connection:
            rows = connection.execute("SELECT body FROM strategies ORDER BY recorded_at, digest").fetchall()
        return tuple(item for (body,) in rows if (item := _record(body)) is not None)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection: sqlite3.Connection | None = None
        try:
            # The rollback journal, not WAL: home folders are often on NFS, where WAL does not work.
            connection = sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None)
            self._prepare(connection)
            yield connection
        except sqlite3.Error as error:
            raise StoreError(self._sentence(error)) from error
        finally:
            if connection is not None:
                connection.close()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == VERSION:
            return
        if version:
            raise StoreError(
                f"the knowledge base {self.path} has format {version} and this cutegen-nb reads format "
                f"{VERSION}: use the version that wrote it, or set CUTEGEN_KNOWLEDGE to another folder"
            )
        foreign = connection.execute(
            "SELECT count(*) FROM sqlite_master WHERE name != 'strategies'"
        ).fetchone()[0]
        if foreign:
            raise StoreError(
                f"{self.path} is a database of something else: set CUTEGEN_KNOWLEDGE to another folder"
            )
        connection.executescript(_CREATE)

    def _sentence(self, error: sqlite3.Error) -> str:
        code = getattr(error, "sqlite_errorname", "") or ""
        if code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            return (
                f"the knowledge base {self.path} is damaged ({error}): restore a copy, or move it away and "
                "a new one is begun"
            )
        if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            return (
                f"cannot open the knowledge base {self.path} ({error}): "
                "set CUTEGEN_KNOWLEDGE to a folder you may write to"
            )
        return f"the knowledge base {self.path} could not be read or written ({error})"


def _size(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM strategies").fetchone()[0])


def _record(body: str) -> StrategyRecord | None:
    try:
        return decode(StrategyRecord, json.loads(body))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
