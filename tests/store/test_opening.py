"""Opening of a store's database, and a sentence for each error of SQLite."""

import sqlite3

import pytest

from cutegen_nb.core.errors import StoreError
from cutegen_nb.store.opening import open_readable, sqlite_errors
from cutegen_nb.store.schema import VERSION


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("SQLITE_FULL", "the disk is full"),
        ("SQLITE_READONLY", "may write to with --store"),
        ("SQLITE_BUSY", "in use by another program"),
        ("SQLITE_NOTADB", "not a session store"),
        ("SQLITE_CONSTRAINT_PRIMARYKEY", "holds this session or round already"),
        ("SQLITE_ERROR", "could not be read or written"),
    ],
)
def test_each_error_names_the_next_step(tmp_path, name, words):
    error = sqlite3.OperationalError("why")
    error.sqlite_errorname = name
    with pytest.raises(StoreError, match=words), sqlite_errors(tmp_path / "store.db"):
        raise error


def test_a_folder_without_a_store_has_no_sessions(tmp_path):
    with pytest.raises(StoreError, match="no sessions in"):
        open_readable(tmp_path / "store.db")


def test_a_newer_format_is_told_with_both_numbers(tmp_path):
    path = tmp_path / "store.db"
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE a (b)")
        made.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(StoreError, match=f"has format {VERSION + 1} .* up to {VERSION}"):
        open_readable(path)
