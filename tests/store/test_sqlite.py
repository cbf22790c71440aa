from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.compiled.listing import CodeListing, CodeRow, packed_rows
from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.round import Action, Attempt, Decision, Prompt, Reply, Round, Usage
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.store.bundle import packed
from cutegen_nb.store.schema import VERSION
from cutegen_nb.store.sqlite import FILE_NAME, SqliteStore
from cutegen_nb.testing import examples

ROOT = Path(__file__).parents[2]


def session(name: str = "relu") -> Session:
    return Session(
        name=name,
        problem=examples.relu_problem(name),
        facts=examples.relu_facts(),
        device=examples.simulated_device(),
        author="scripted",
        budget=Budget(rounds=3, wall_s=60.0),
        created_at="2026-01-01T00:00:00+00:00",
    )


def finished(number: int, padding: str = "") -> Round:
    candidate = Candidate(source=examples.kernel_source(f"{number}{padding}"), author="scripted")
    prompt = Prompt(system="s", user="u", digest="d", strategy=examples.strategies()[0], parent=candidate)
    attempt = Attempt(
        purpose="optimise",
        prompt=prompt,
        reply=Reply(text="answer", usage=Usage(input_tokens=3, output_tokens=4, seconds=0.5)),
        candidate=candidate,
        evaluation=examples.passed(100 - number),
    )
    return Round(
        number=number,
        stage=Stage.STRUCTURE,
        strategy=examples.strategies()[0],
        attempts=(attempt,),
        comparison=Comparison(relation=Relation.LESS_WORK, reason="fewer", against="d"),
        decisions=(Decision(gate="revision", action=Action.APPROVE, by="policy:auto"),),
        started_at="2026-01-01T00:00:00+00:00",
        seconds=1.5,
    )


def test_a_session_comes_back_as_it_was(tmp_path):
    with SqliteStore(tmp_path) as store:
        store.create(session())
        store.append("relu", finished(0))
        store.append("relu", finished(1))
        store.stop("relu", "enough")
    with SqliteStore(tmp_path, writable=False) as store:
        assert store.load("relu") == replace(session(), rounds=(finished(0), finished(1)), stopped="enough")
        assert store.names() == ("relu",)


def test_a_round_is_never_overwritten(tmp_path):
    with SqliteStore(tmp_path) as store:
        store.create(session())
        store.append("relu", finished(0))
        with pytest.raises(StoreError, match="already"):
            store.append("relu", finished(0, "other"))
        assert store.load("relu").rounds == (finished(0),)


def test_an_unknown_session_is_answered_with_the_known(tmp_path):
    with SqliteStore(tmp_path) as store:
        store.create(session("gelu"))
        with pytest.raises(StoreError, match=r"no session 'relu' .* there is gelu"):
            store.load("relu")
        with pytest.raises(StoreError, match="no session 'relu'"):
            store.append("relu", finished(0))


def test_a_second_writer_is_told_who_the_first_is_and_a_reader_is_let_in(tmp_path):
    code = f"from pathlib import Path; from cutegen_nb.store.sqlite import FILE_NAME, SqliteStore; SqliteStore(Path({str(tmp_path)!r}))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with SqliteStore(tmp_path) as store:
        store.create(session())
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
        )
        assert f"process {os.getpid()}" in done.stderr.splitlines()[-1]
        assert "StoreError" in done.stderr
        with SqliteStore(tmp_path, writable=False) as reader:
            assert reader.names() == ("relu",)
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_reading_where_nothing_was_stored_says_so(tmp_path):
    with pytest.raises(StoreError, match="no sessions in"):
        SqliteStore(tmp_path / "empty", writable=False)


def test_a_store_that_a_full_disk_left_empty_holds_no_sessions(tmp_path):
    with sqlite3.connect(tmp_path / "sessions.sqlite") as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    with pytest.raises(StoreError, match="no sessions in"):
        SqliteStore(tmp_path, writable=False)
    SqliteStore(tmp_path).close()


def test_a_file_in_the_way_of_the_folder_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=r"cannot make the folder .*--store"):
        SqliteStore(tmp_path / "file" / ".cutegen")


def test_a_file_that_is_no_database_is_one_sentence(tmp_path):
    (tmp_path / "sessions.sqlite").write_bytes(b"not a database, and long enough to look like one" * 50)
    with pytest.raises(StoreError, match="not a session store"):
        SqliteStore(tmp_path)


def test_a_database_of_something_else_is_left_alone(tmp_path):
    with sqlite3.connect(tmp_path / "sessions.sqlite") as other:
        other.execute("CREATE TABLE cookies (x)")
    with pytest.raises(StoreError, match="something else"):
        SqliteStore(tmp_path)
    assert sqlite3.connect(tmp_path / "sessions.sqlite").execute("SELECT * FROM cookies").fetchall() == []


def test_a_newer_format_is_refused(tmp_path):
    SqliteStore(tmp_path).close()
    with sqlite3.connect(tmp_path / "sessions.sqlite") as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(StoreError, match=f"format {VERSION + 1}"):
        SqliteStore(tmp_path)


def test_a_damaged_session_does_not_hide_the_others(tmp_path):
    with SqliteStore(tmp_path) as store:
        store.create(session("good"))
        store.create(session("bad"))
    with sqlite3.connect(tmp_path / "sessions.sqlite") as connection:
        connection.execute("UPDATE sessions SET head = '{' WHERE name = 'bad'")
    with SqliteStore(tmp_path) as store:
        assert store.load("good").name == "good"
        with pytest.raises(StoreError, match=r"'bad'.*cannot be read"):
            store.load("bad")


def as_nobody(work: Callable[[], str]) -> str:
    """Return the result of `work` in a child that dropped root's power, where the test has it."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            os.write(sender, work().encode())
        finally:
            os._exit(0)
    os.close(sender)
    with os.fdopen(receiver) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


@pytest.fixture
def open_folder():
    """A folder that another user can reach: pytest's own are private."""
    folder = Path(tempfile.mkdtemp(prefix="cutegen-store-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_read_only_folder_can_be_read_and_writing_is_one_sentence(open_folder):
    with SqliteStore(open_folder) as store:
        store.create(session())
        store.append("relu", finished(0))
    open_folder.chmod(0o555)

    def read_then_write() -> str:
        rounds = len(SqliteStore(open_folder, writable=False).load("relu").rounds)
        try:
            SqliteStore(open_folder)
        except StoreError as error:
            return f"{rounds} {error}"
        return "it could be written"

    answer = as_nobody(read_then_write)
    assert answer.startswith("1 cannot write")
    assert "--store" in answer


def test_a_full_disk_is_one_sentence_and_what_was_stored_stays(tmp_path):
    """A limit on the size of files fails a write as a full disk does."""
    with SqliteStore(tmp_path) as store:
        store.create(session())
        store.append("relu", finished(0))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
        try:
            with pytest.raises(StoreError, match=r"disk|could not be"):
                store.append("relu", finished(1, "x" * 1_000_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        store.append("relu", finished(1))
        assert store.load("relu").rounds == (finished(0), finished(1))


WRITER = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_sqlite import finished, session
from cutegen_nb.store.sqlite import FILE_NAME, SqliteStore
store = SqliteStore(Path({folder!r}))
if not store.names():
    store.create(session())
number = len(store.load("relu").rounds)
while True:
    print(number, flush=True)
    store.append("relu", finished(number, "x" * 20000))
    number += 1
"""


@pytest.mark.long
def test_kill_9_at_any_moment_loses_at_most_the_round_in_flight(tmp_path):
    code = WRITER.format(tests=str(Path(__file__).parent), folder=str(tmp_path))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    moments = random.Random(7)
    expected = 0
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
        )
        assert process.stdout is not None
        announced = int(process.stdout.readline())
        assert announced >= expected
        time.sleep(moments.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        announced = max([announced, *map(int, process.stdout.read().split())])
        process.wait()
        with SqliteStore(tmp_path) as store:
            rounds = store.load("relu").rounds
        # A round is announced before it is stored: all before it are there, it may be.
        assert len(rounds) in {announced, announced + 1}
        assert [item.number for item in rounds] == list(range(len(rounds)))
        expected = len(rounds)


def test_a_mistyped_session_is_answered_with_the_newest_and_the_nearest(tmp_path):
    with SqliteStore(tmp_path) as store:
        for name in ("relu", *(f"softmax_{number}" for number in range(10))):
            store.create(session(name))
        with pytest.raises(StoreError, match=r"there is softmax_9, .*, softmax_2 and 3 older ones$"):
            store.load("nobody")
        with pytest.raises(StoreError, match=r"; did you mean relu\?$"):
            store.load("relo")
    with SqliteStore(tmp_path / "nine") as store:
        for number in range(9):
            store.create(session(f"relu_{number}"))
        with pytest.raises(StoreError, match=r" and 1 older one$"):
            store.load("nobody")


def test_a_population_comes_back_with_its_epochs_and_an_epoch_is_never_overwritten(tmp_path):
    evolved = examples.evolved_session()
    again = replace(evolved.epochs[0], members=())
    with SqliteStore(tmp_path) as store:
        store.create(evolved)
        store.append_epoch("relu", replace(evolved.epochs[0], number=2))
        with pytest.raises(StoreError, match="already"):
            store.append_epoch("relu", again)
    with SqliteStore(tmp_path, writable=False) as store:
        found = store.load("relu")
        assert found == replace(evolved, epochs=(*evolved.epochs, replace(evolved.epochs[0], number=2)))
        with pytest.raises(StoreError, match="cannot write"):
            store.append_epoch("relu", replace(again, number=3))


def test_a_session_is_stored_whole_or_not_at_all(tmp_path):
    doubled = replace(session(), rounds=(finished(0), finished(0)))
    with SqliteStore(tmp_path) as store:
        with pytest.raises(StoreError, match="already"):
            store.create(doubled)
        assert store.names() == ()
        store.create(replace(session(), rounds=(finished(0),)))
        assert store.load("relu").rounds == (finished(0),)


def test_the_round_that_others_are_compared_with_is_kept(tmp_path):
    with SqliteStore(tmp_path) as store:
        store.create(session())
        store.append("relu", finished(0))
        store.compare("relu", 0)
    with SqliteStore(tmp_path) as store:
        assert store.load("relu").compared_with == 0
        store.compare("relu", None)
        assert store.load("relu") == replace(session(), rounds=(finished(0),))


def test_what_a_person_has_typed_is_kept_and_leaves_in_no_bundle(tmp_path):
    with SqliteStore(tmp_path) as store:
        store.create(session())
        store.keep_draft("relu", '{"key": "revision:0:1", "text": "half written"}')
    with SqliteStore(tmp_path) as store:
        assert "half written" in store.load("relu").draft
        assert "half written" not in packed(store.load("relu")).text


def test_the_code_of_a_kernel_is_stored_and_rounds_of_before_have_none(tmp_path):
    rows = (CodeRow("{"), CodeRow("    ret; // “🙂”", 7, 3))
    listing = CodeListing(kernel="kernel", language="PTX", packed=packed_rows(rows))
    made = finished(0)
    (attempt,) = made.attempts
    coded = replace(
        made, attempts=(replace(attempt, evaluation=replace(attempt.evaluation, code=(listing,))),)
    )
    with SqliteStore(tmp_path) as store:
        store.create(session())
        store.append("relu", coded)
        assert store.load("relu").rounds == (coded,)
        assert store.load("relu").rounds[0].evaluation.code[0].rows() == rows
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        (body,) = connection.execute("SELECT body FROM rounds").fetchone()
        older = json.loads(body)
        del older["attempts"][0]["evaluation"]["code"]
        connection.execute("UPDATE rounds SET body = ?", (json.dumps(older),))
    connection.close()
    with SqliteStore(tmp_path) as store:
        assert store.load("relu").rounds == (made,)
