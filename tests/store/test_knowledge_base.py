"""The machine's knowledge base: kept once, replaced by newer times, shared by processes, never mistaken."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.search.knowledge import RecordSource
from cutegen_nb.store.knowledge_base import FILE_NAME, VERSION, KnowledgeBase, knowledge_folder

ROOT = Path(__file__).parents[2]


@pytest.fixture
def base(tmp_path):
    return KnowledgeBase(tmp_path / "knowledge")


def test_records_come_back_as_they_were_oldest_first(base, record):
    new, old = record("new", recorded_at="2026-02-02"), record("old", recorded_at="2026-01-01")
    assert base.records() == ()
    assert base.learn([new, old]) == 2
    assert base.records() == (old, new)
    assert KnowledgeBase(base.path.parent).records() == (old, new)


def test_nothing_learned_makes_no_file(base):
    assert base.learn([]) == 0
    assert not base.path.exists()


def test_the_same_kernels_timed_again_replace_their_record_only_if_newer(base, record):
    first = record(speedup=2.0, recorded_at="2026-01-02")
    assert base.learn([first]) == 1
    assert base.learn([record(speedup=9.0, recorded_at="2026-01-01")]) == 0
    assert base.records() == (first,)
    newer = record(speedup=1.5, recorded_at="2026-01-03")
    assert base.learn([newer, record("other")]) == 1
    assert {item.speedup for item in base.records() if item.strategy.name == "vectorise"} == {1.5}
    assert len(base.records()) == 2


def test_where_a_record_came_from_is_kept(base, record):
    base.learn([record(source=RecordSource.IMPORTED)])
    assert base.records()[0].source is RecordSource.IMPORTED


def test_a_record_of_another_version_is_left_out_and_the_others_are_read(base, record):
    base.learn([record("good"), record("bad"), record("worse"), record("fast")])
    with sqlite3.connect(base.path) as connection:
        connection.execute("UPDATE strategies SET body = '{' WHERE body LIKE '%\"bad\"%'")
        connection.execute(
            "UPDATE strategies SET body = replace(body, '\"vectors-128\"', '\"new\"') WHERE body LIKE '%worse%'"
        )
        connection.execute(
            "UPDATE strategies SET body = replace(body, '\"speedup\": 2.0', '\"speedup\": 0') "
            "WHERE body LIKE '%fast%'"
        )
    assert [item.strategy.name for item in base.records()] == ["good"]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("PRAGMA user_version = 9", f"has format 9 and this cutegen-nb reads format {VERSION}"),
        ("PRAGMA user_version = 0; CREATE TABLE cookies (x)", "is a database of something else"),
    ],
)
def test_a_file_of_another_kind_is_refused_and_left_alone(base, record, spoil, said):
    base.learn([record()])
    with sqlite3.connect(base.path) as connection:
        connection.executescript(spoil)
    before = base.path.read_bytes()
    for use in (base.records, lambda: base.learn([record("other")])):
        with pytest.raises(StoreError, match=said):
            use()
    assert base.path.read_bytes() == before


def test_a_file_that_is_no_database_is_one_sentence(base):
    base.path.parent.mkdir()
    base.path.write_bytes(b"not a database, and long enough to look like one" * 50)
    with pytest.raises(StoreError, match=r"is damaged .*a new one is begun"):
        base.records()


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path, record):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot make the folder"):
        KnowledgeBase(tmp_path / "file" / "knowledge").learn([record()])


def test_an_empty_file_that_a_crash_left_is_begun_anew(base, record):
    base.path.parent.mkdir()
    base.path.touch()
    assert base.records() == ()
    assert base.learn([record()]) == 1


@pytest.mark.parametrize(
    ("given", "folder"),
    [
        ({"CUTEGEN_KNOWLEDGE": "/a/b", "XDG_DATA_HOME": "/c"}, "/a/b"),
        ({"CUTEGEN_KNOWLEDGE": "~/k", "HOME": "/h"}, "/h/k"),
        ({"CUTEGEN_KNOWLEDGE": "", "XDG_DATA_HOME": "/c"}, "/c/cutegen_nb"),
        ({"CUTEGEN_KNOWLEDGE": "", "XDG_DATA_HOME": "", "HOME": "/h"}, "/h/.local/share/cutegen_nb"),
    ],
)
def test_the_folder_is_the_users_data_folder_unless_named(monkeypatch, given, folder):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert knowledge_folder() == Path(folder)


WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from cutegen_nb.store.knowledge_base import KnowledgeBase
base = KnowledgeBase(Path(sys.argv[1]))
first = next(item for item in base.records() if item.candidate_digest == "b")
for number in range(int(sys.argv[3])):
    name = f"{sys.argv[2]}-{number}"
    base.learn([replace(first, candidate_digest=name), replace(first, candidate_digest=name + "b")])
    print(number, flush=True)
"""


def writer(base, name, records=10):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(base.path.parent), name, str(records)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_two_processes_may_learn_at_once(base, record):
    base.learn([record()])
    both = [writer(base, name) for name in ("one", "two")]
    assert [process.wait() for process in both] == [0, 0]
    for process in both:
        process.stdout.close()
    assert len(base.records()) == 1 + 2 * 2 * 10


def test_kill_9_while_learning_leaves_whole_transactions(base, record):
    base.learn([record()])
    process = writer(base, "one", records=100_000)
    assert process.stdout.readline() == "0\n"
    process.send_signal(signal.SIGKILL)
    told = 1 + len(process.stdout.readlines())
    process.stdout.close()
    process.wait()
    found = len(base.records()) - 1
    assert found % 2 == 0
    assert found // 2 in {told, told + 1}
    assert base.learn([record("later")]) == 1
    assert base.path.name == FILE_NAME
