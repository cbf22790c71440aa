"""`cutegen-nb merge`: two revisions with one parent become one kernel file; the session stays as it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.cli import main
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples

PARENT = "THREADS = 128\nWIDTH = 1\n\n\n" + "".join(f"a{i} = {i}\n" for i in range(12)) + "END = 0\n"


@pytest.fixture(autouse=True)
def session(tmp_path, monkeypatch):
    """Three revisions: r1 and r2 change different lines of r0, r3 the same line as r1."""
    monkeypatch.chdir(tmp_path)
    first = Candidate(source=PARENT, author="test")
    sources = (
        PARENT.replace("THREADS = 128", "THREADS = 256"),
        PARENT.replace("END = 0", "END = 1"),
        PARENT.replace("THREADS = 128", "THREADS = 64"),
    )
    made = examples.session_of(Relation.FIRST, *[Relation.LESS_WORK] * 3)
    kernels = [first, *(Candidate(source=one, author="test", parents=(first.digest,)) for one in sources)]
    rounds = tuple(
        replace(item, attempts=(replace(item.attempts[0], candidate=kernel),))
        for item, kernel in zip(made.rounds, kernels, strict=True)
    )
    with SqliteStore(Path(".cutegen")) as store:
        store.create(replace(made, rounds=rounds))
    return replace(made, rounds=rounds)


def test_both_changes_are_in_the_file_and_the_next_command_is_named(session, capsys):
    assert main(["merge", "relu", "r1", "r2", "-o", "both.py"]) == 0

    merged = Path("both.py").read_text()
    assert "THREADS = 256" in merged
    assert "END = 1" in merged
    assert "`cutegen-nb evaluate relu.py both.py` judges it" in capsys.readouterr().out
    with SqliteStore(Path(".cutegen"), writable=False) as store:
        assert store.load("relu").rounds == session.rounds


def test_json_names_the_ancestor_and_the_parents(session, capsys):
    assert main(["merge", "relu", "r1", "r2:1", "-o", "both.py", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)

    assert (found["session"], found["ancestor"], found["output"]) == ("relu", "r0", "both.py")
    assert found["parents"] == [session.rounds[number].candidate.digest for number in (1, 2)]


def test_changes_of_the_same_lines_are_shown_and_nothing_is_written(capsys):
    assert main(["merge", "relu", "r1", "r3", "-o", "both.py"]) == 2
    first, *shown = capsys.readouterr().err.splitlines()

    assert first.startswith("cutegen-nb: error: r1 and r3 change the same lines in different ways")
    assert shown == ["line 1 of r0:", "  r1 | THREADS = 256", "  r3 | THREADS = 64"]
    assert not Path("both.py").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("r1", "r9", "-o", "both.py"), "relu has no revision 'r9': there is r0, r1, r2, r3"),
        (("r1", "r2:7", "-o", "both.py"), "7"),
        (("r1", "r2", "-o", "both.txt"), "-o 'both.txt' does not end in .py, as a kernel does"),
        (("r1", "r2", "-o", "no/both.py"), "no/both.py cannot be written (No such file or directory)"),
    ],
)
def test_what_cannot_be_merged_is_one_sentence_and_no_file(capsys, words, sentence):
    assert main(["merge", "relu", *words]) == 2
    err = capsys.readouterr().err

    assert err.startswith("cutegen-nb: error: ")
    assert err.count("\n") == 1
    assert sentence in err
    assert not list(Path().glob("both*"))
