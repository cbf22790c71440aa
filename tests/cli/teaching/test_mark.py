"""`cutegen-nb assignment` and `cutegen-nb mark` on the shipped assignment."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

# pytest's importlib mode puts no test folder on the path.
sys.path.insert(0, str(Path(__file__).parents[2] / "teaching"))

from rows_assignment import SOLUTIONS, TOML, answer, notebook

from cutegen_nb.cli import main


def test_an_assignment_is_printed_in_words_and_as_json(capsys):
    assert main(["assignment", str(TOML)]) == 0
    assert "Work on rows: 2 exercises, 10 points" in capsys.readouterr().out
    assert main(["assignment", str(TOML), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["points"] == 10
    assert [one["forbidden"] for one in found["exercises"]] == [[], ["split-reduction"]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.toml", "."], "missing.toml cannot be read"),
        ([str(TOML), "nowhere"], "nowhere is no folder: give the folder of the submissions"),
        ([str(TOML), ".", "-o", "marks.pdf"], "-o 'marks.pdf' does not end in .html, .csv, .json"),
        ([str(TOML), ".", "-o", "none/marks.csv"], "The folder none does not exist"),
    ],
)
def test_a_wrong_request_gets_one_sentence(words, said, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["mark", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.long
@pytest.mark.slow
def test_a_folder_is_marked_and_written_in_three_forms(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "submitted"
    folder.mkdir()
    (folder / "ann.ipynb").write_text(notebook(answer("rows/1", SOLUTIONS["rows/1"])))
    (folder / "bob.ipynb").write_text("{")
    assert main(["mark", str(TOML), "submitted", "-o", "m.html", "-o", "m.csv", "-o", "m.json"]) == 0
    shown = capsys.readouterr().out
    assert "ann      5       –       5" in shown
    assert "ann: rows/2: no cell begins with %%cutegen check rows/2" in shown
    assert "bob: submitted/bob.ipynb cannot be read as a notebook (it is not JSON in UTF-8)" in " ".join(
        shown.split()
    )
    assert json.loads((tmp_path / "m.json").read_text())["students"][0]["points"] == 5
    assert "ann,rows/1,5,5,PASSED,4096,6144" in (tmp_path / "m.csv").read_text()
    assert "Work on rows: marks" in (tmp_path / "m.html").read_text()
