"""A session leaves as one file and comes back as it was; a file of somebody else's is only ever read."""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import replace

import pytest

from cutegen_nb.core.errors import DamagedSession, StoreError
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.store import bundle
from cutegen_nb.store.bundle import read_bundle, write_bundle
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples

VERSIONS = {"python": "3.12.3"}
SESSION = examples.session_of(Relation.FIRST, Relation.LESS_WORK)


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "relu.cutegen"
    write_bundle(SESSION, path, VERSIONS)
    return path


def _rewritten(path, changes):
    """The same bundle with members replaced, added, or (None) left out."""
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    members |= changes
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in members.items():
            if data is not None:
                new.writestr(name, data)
    return path


def _with_session(path, data: bytes):
    manifest = {"format": bundle.FORMAT, "files": {"session.json": hashlib.sha256(data).hexdigest()}}
    return _rewritten(path, {"session.json": data, "manifest.json": json.dumps(manifest).encode()})


def test_a_session_comes_back_as_it_was(written):
    assert read_bundle(written) == SESSION


def test_the_same_session_gives_the_same_bytes(written, tmp_path):
    write_bundle(SESSION, tmp_path / "again.cutegen", VERSIONS)
    assert (tmp_path / "again.cutegen").read_bytes() == written.read_bytes()


def test_the_stored_texts_give_the_same_bytes_as_the_session(written, tmp_path):
    edited = replace(SESSION.rounds[1], attempts=(*SESSION.rounds[1].attempts, SESSION.rounds[0].attempts[0]))
    made = replace(SESSION, rounds=(SESSION.rounds[0], edited), stopped="the budget of 2 rounds is spent")
    with SqliteStore(tmp_path) as store:
        store.create(made)
        store.stop(made.name, made.stopped)
        write_bundle(store.packed(made.name), tmp_path / "stored.cutegen", VERSIONS)
    write_bundle(made, tmp_path / "whole.cutegen", VERSIONS)
    assert (tmp_path / "stored.cutegen").read_bytes() == (tmp_path / "whole.cutegen").read_bytes()
    assert read_bundle(tmp_path / "stored.cutegen") == made


def test_the_address_of_a_model_server_neither_leaves_nor_comes_in(written, tmp_path):
    # A key would go to the server that a stranger's file names.
    named = replace(SESSION, server="https://models.example/v1")
    with SqliteStore(tmp_path) as store:
        store.create(named)
        assert store.load(named.name).server == named.server
        for made in (named, store.packed(named.name)):
            write_bundle(made, tmp_path / "named.cutegen", VERSIONS)
            assert b"models.example" not in zipfile.ZipFile(tmp_path / "named.cutegen").read("session.json")
    body = json.loads(zipfile.ZipFile(written).read("session.json"))
    foreign = json.dumps({**body, "server": named.server}).encode()
    assert read_bundle(_with_session(written, foreign)).server == ""


def test_a_damaged_round_is_not_packed(tmp_path):
    with SqliteStore(tmp_path) as store:
        store.create(SESSION)
        store._connection.execute("UPDATE rounds SET body = '{' WHERE number = 1")
        with pytest.raises(DamagedSession):
            store.packed(SESSION.name)


def test_kernels_and_problem_lie_in_it_as_files(written):
    with zipfile.ZipFile(written) as opened:
        assert opened.read("r0.py").decode() == SESSION.rounds[0].candidate.source
        assert opened.read("problem.py").decode() == SESSION.problem.source


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"session.json": b"{}"}, "is not what the manifest says"),
        ({"manifest.json": b"{}"}, "has format None"),
        ({"manifest.json": b"[]"}, "is list, not an object"),
        ({"manifest.json": b"{"}, "is not JSON"),
        ({"manifest.json": None}, "has no manifest.json"),
        ({"manifest.json": b'{"format": 99}'}, "has format 99"),
    ],
)
def test_a_bundle_that_was_changed_is_refused_in_a_sentence(written, changes, sentence):
    with pytest.raises(StoreError, match=sentence):
        read_bundle(_rewritten(written, changes))


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b'{"_": "Session", "name": 3}',
        b'{"rounds": {"a": 1}}',
        b'{"rounds": [null], "name": "x"}',
        b"[" * 100_000,
    ],
)
def test_a_session_that_is_none_is_refused_in_a_sentence(written, data):
    with pytest.raises(StoreError):
        read_bundle(_with_session(written, data))


def test_a_file_that_is_no_zip_and_one_that_is_cut_are_refused(written, tmp_path):
    other = tmp_path / "other.cutegen"
    other.write_bytes(b"PK not a zip")
    whole = written.read_bytes()
    for data in (b"", b"PK not a zip", whole[: len(whole) // 2], whole[:40] + b"\x00" * 60 + whole[100:]):
        other.write_bytes(data)
        with pytest.raises(StoreError):
            read_bundle(other)
    with pytest.raises(StoreError, match="No such file"):
        read_bundle(tmp_path / "none.cutegen")


def test_a_member_that_unpacks_to_more_than_a_session_is_left_unread(written, monkeypatch):
    monkeypatch.setattr(bundle, "LARGEST_BYTES", 1 << 20)
    with pytest.raises(StoreError, match="over 1 MiB unpacked"):
        read_bundle(_with_session(written, b" " * (2 << 20)))
