"""Records as a file: the same after the round trip, and a stranger's file is only ever read."""

from __future__ import annotations

import json
import math
from collections import Counter

import pytest

from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.search.knowledge import RecordSource
from cutegen_nb.store import knowledge_file
from cutegen_nb.store.knowledge_base import KnowledgeBase
from cutegen_nb.store.knowledge_file import read_records, shipped_records, write_records


@pytest.fixture
def path(tmp_path, record):
    """A file with two records."""
    written = tmp_path / "strategies.json"
    write_records(written, [record(), record("tile")], note="From here.")
    return written


def changed(path, **fields):
    """The file with fields of the whole replaced; None leaves one out."""
    whole = {**json.loads(path.read_text()), **fields}
    path.write_text(json.dumps({name: value for name, value in whole.items() if value is not None}))
    return path


def with_record(path, **fields):
    """The file with fields of its second record replaced."""
    records = json.loads(path.read_text())["records"]
    records[1] |= fields
    return changed(path, records=records)


def test_exported_records_come_back_as_they_were_and_say_that_they_were_imported(path, record):
    found = read_records(path, RecordSource.IMPORTED)
    assert found == tuple(record(name, source=RecordSource.IMPORTED) for name in ("vectorise", "tile"))
    assert read_records(path, RecordSource.OWN) == (record(), record("tile"))


def test_the_same_records_give_the_same_bytes(path, tmp_path, record):
    again = tmp_path / "again.json"
    write_records(again, [record(), record("tile")], note="From here.")
    assert again.read_bytes() == path.read_bytes()
    assert "🙂" in path.read_text(encoding="utf-8")


def test_a_knowledge_base_goes_to_another_machine_and_keeps_its_own_records(tmp_path, path, record):
    base = KnowledgeBase(tmp_path / "other")
    mine = record(speedup=9.0, recorded_at="2027-01-01")
    base.learn([mine])
    assert base.learn(read_records(path, RecordSource.IMPORTED)) == 1
    sources = {item.strategy.name: (item.source, item.speedup) for item in base.records()}
    assert sources == {"vectorise": (RecordSource.OWN, 9.0), "tile": (RecordSource.IMPORTED, 2.0)}


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.write_text("{"), "is not JSON"),
        (lambda path: path.write_text("[" * 100_000), "is not JSON"),
        (lambda path: path.write_text("[]"), "holds no strategies"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), "is not JSON"),
        (lambda path: path.unlink(), "cannot read .*No such file"),
        (lambda path: changed(path, kind="cookies"), "holds no strategies"),
        (lambda path: changed(path, format=2), "has format 2 and this cutegen-nb reads format 1"),
        (lambda path: changed(path, extra=1), "unknown field 'extra'"),
        (lambda path: changed(path, records=None), "records are missing"),
        (lambda path: changed(path, records={}), "records is not a list"),
        (lambda path: changed(path, records=[{}] * 20_001), "records is not a list of at most 20,000"),
        (lambda path: changed(path, records=[1]), "record 0 cannot be read"),
        (lambda path: with_record(path, speedup=0), "record 1 cannot be read: speedup is 0.0"),
        (lambda path: with_record(path, speedup="Infinity"), "it must be finite and above 0"),
        (lambda path: with_record(path, speedup=math.nan), "it must be finite and above 0"),
        (lambda path: with_record(path, revision=None), "record 1 cannot be read"),
        (lambda path: with_record(path, command="rm"), "unknown field 'command'; nothing was imported"),
        (lambda path: with_record(path, session="x" * 2001), "session has 2,001 characters"),
        (lambda path: with_record(path, session="a\x1b[2Jb"), "session holds a control character"),
        (lambda path: with_record(path, session="a\u202eb"), "session holds a control character"),
        (lambda path: with_record(path, parent_in_force=["coalesced"] * 65), "has 65 items"),
        (lambda path: with_record(path, versions={str(one): "1" for one in range(65)}), "has 65 entries"),
        (lambda path: with_record(path, versions={"torch": {}}), "versions holds dict where text belongs"),
        (lambda path: with_record(path, versions={"a\x00": "1"}), "control character"),
        (lambda path: with_record(path, strategy={"_": "Session"}), "strategy is no Strategy"),
        (lambda path: with_record(path, bound="gravity"), "record 1 cannot be read"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_or_holds_too_much_is_refused_whole(path, spoil, said):
    spoil(path)
    with pytest.raises(StoreError, match=said):
        read_records(path, RecordSource.IMPORTED)


def test_a_file_that_is_too_large_is_not_read_to_its_end(path, monkeypatch):
    monkeypatch.setattr(knowledge_file, "LARGEST_BYTES", 1 << 20)
    with path.open("ab") as file:
        file.truncate((1 << 20) + 1)
    with pytest.raises(StoreError, match="is over 1 MiB"):
        read_records(path, RecordSource.IMPORTED)


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path, record):
    with pytest.raises(StoreError, match=r"cannot write .*No such file"):
        write_records(tmp_path / "nowhere" / "strategies.json", [record()])


def test_the_package_ships_records_that_two_gpus_measured():
    shipped = shipped_records()
    assert Counter(item.device for item in shipped) == {"NVIDIA H200": 108, "NVIDIA H100 80GB HBM3": 67}
    assert len({item.digest for item in shipped}) == len(shipped)
    assert {item.source for item in shipped} == {RecordSource.SHIPPED}
    assert not any(item.estimated for item in shipped)
    assert any(item.speedup < 1 for item in shipped)
