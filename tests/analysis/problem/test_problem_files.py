"""Problem files of folders and lists, their names, and the selection of some."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.problem.problem_files import only, problem_files, unique_names
from cutegen_nb.core.errors import UsageError


@pytest.fixture
def folder(tmp_path):
    inner = tmp_path / "level1"
    inner.mkdir()
    for name in ("100_Last.py", "19_ReLU.py", "2_Matmul.py", "softmax.py", "_helper.py", "notes.txt"):
        (inner / name).touch()
    return inner


def names(paths):
    return [path.name for path in paths]


def test_a_folder_is_read_by_number_and_then_by_name(folder):
    assert names(problem_files([str(folder)])) == ["2_Matmul.py", "19_ReLU.py", "100_Last.py", "softmax.py"]


def test_files_come_in_the_order_given_and_each_once(folder):
    given = [str(folder / "softmax.py"), str(folder), str(folder / "softmax.py"), str(folder / "_helper.py")]
    assert names(problem_files(given)) == [
        "softmax.py", "2_Matmul.py", "19_ReLU.py", "100_Last.py", "_helper.py",
    ]  # fmt: skip


def test_what_does_not_exist_or_holds_no_problem_is_said(folder, tmp_path):
    with pytest.raises(UsageError, match="nowhere does not exist"):
        problem_files([str(folder / "nowhere")])
    with pytest.raises(UsageError, match=r"holds no \.py file, but level1 in it do"):
        problem_files([str(tmp_path)])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"holds no \.py file: give a folder"):
        problem_files([str(tmp_path / "empty")])


def test_names_are_identifiers_and_two_files_of_one_name_are_told_apart(tmp_path):
    files = [tmp_path / part for part in ("a/19_ReLU.py", "b/19_ReLU.py", "c/19_relu.py")]
    found = unique_names(files)
    assert len(set(found.values())) == 3
    assert all(name.isidentifier() for name in found.values())
    assert found[files[1]] == f"{found[files[0]]}_2"


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        ("19", ["19_ReLU.py"]),
        ("2-50", ["2_Matmul.py", "19_ReLU.py"]),
        ("softmax, 100", ["100_Last.py", "softmax.py"]),
        ("19_ReLU,19_ReLU.py", ["19_ReLU.py"]),
    ],
)
def test_some_are_selected_by_number_range_or_name_in_the_folders_order(folder, wanted, kept):
    assert names(only(problem_files([str(folder)]), wanted)) == kept


@pytest.mark.parametrize("wanted", ["20-50", "tanh", "19,tanh", ""])
def test_a_selection_that_names_none_is_answered_with_the_range(folder, wanted):
    with pytest.raises(UsageError, match=r"names none of the 4 problems \(2_Matmul … softmax\)"):
        only(problem_files([str(folder)]), wanted)
