from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

# pytest's importlib mode puts no test folder on the path.
sys.path.insert(0, str(Path(__file__).parent))

from rows_assignment import answer, notebook

from cutegen_nb.core.errors import UsageError
from cutegen_nb.teaching.submission import read_submissions

NAMES = ("rows/1", "rows/2")


def read(folder: Path):
    return {one.student: one for one in read_submissions(str(folder), NAMES)}


def test_a_student_is_a_file_or_a_folder_with_notebooks_at_any_depth(tmp_path: Path):
    (tmp_path / "ann.ipynb").write_text(notebook("x = 1", answer("rows/1", "a")))
    deep = tmp_path / "bob" / "rows"
    hidden = deep / ".ipynb_checkpoints"
    hidden.mkdir(parents=True)
    (deep / "a.ipynb").write_text(notebook("\n%%cutegen  check  rows/1 \nb", answer("other/1", "c")))
    (deep / "b.ipynb").write_text(notebook(answer("rows/2", "d")))
    (hidden / "a.ipynb").write_text(notebook(answer("rows/1", "old")))
    (tmp_path / "readme.txt").write_text("no submission")
    found = read(tmp_path)
    assert list(found) == ["ann", "bob"]
    assert found["ann"].answers["rows/1"].source == "# %%cutegen check rows/1\na"
    assert {name: one.source.partition("\n")[2] for name, one in found["bob"].answers.items()} == {
        "rows/1": "b",
        "rows/2": "d",
    }
    assert all(not one.faults for one in found.values())


def test_of_two_cells_of_one_name_the_last_counts_and_a_sentence_says_so(tmp_path: Path):
    (tmp_path / "ann.ipynb").write_text(notebook(answer("rows/1", "a"), answer("rows/1", "b")))
    (found,) = read(tmp_path).values()
    assert found.answers["rows/1"].source.endswith("\nb")
    assert found.answers["rows/1"].remark == "2 cells answer it: the last one counts"


BROKEN = {
    "text": ("{ not json", "it is not JSON in UTF-8"),
    "list": ("[]", "it has no list of cells"),
    "cells": ('{"cells": 3}', "it has no list of cells"),
    "strings": ('{"cells": ["a"]}', "it has no list of cells"),
    "nested": ("[" * 100_000, "it is not JSON in UTF-8"),
    "latin": (b"\xff\xfe", "it is not JSON in UTF-8"),
    "other": (notebook("x = 1"), "no cell begins with %%cutegen check and an exercise of this assignment"),
    "large": (b" " * 20_000_001, "it has 20,000,001 bytes, and a notebook at most 20,000,000"),
}


def test_what_cannot_be_read_is_a_submission_with_one_sentence(tmp_path: Path):
    for name, (content, _) in BROKEN.items():
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / f"{name}.ipynb").write_bytes(data)
    found = read(tmp_path)
    assert set(found) == set(BROKEN)
    for name, (_, words) in BROKEN.items():
        (fault,) = found[name].faults
        assert words in fault
        assert "\n" not in fault


def test_links_devices_and_empty_folders_are_told_and_not_opened(tmp_path: Path):
    secret = tmp_path / "secret.txt"
    secret.write_text(notebook(answer("rows/1", "a")))
    folder = tmp_path / "submitted"
    (folder / "empty").mkdir(parents=True)
    (folder / "link.ipynb").symlink_to(secret)
    os.mkfifo(folder / "pipe.ipynb")
    found = read(folder)
    assert "nothing was handed in" in found["empty"].faults[0]
    assert "it is a link or a device" in found["link"].faults[0]
    assert "it is a link or a device" in found["pipe"].faults[0]


def test_a_folder_that_is_none_or_empty_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="holds no submission"):
        read(tmp_path)
    with pytest.raises(UsageError, match="is no folder"):
        read(tmp_path / "missing")
