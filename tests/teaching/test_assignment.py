from __future__ import annotations

import sys
from pathlib import Path

import pytest

# pytest's importlib mode puts no test folder on the path.
sys.path.insert(0, str(Path(__file__).parent))

from rows_assignment import TOML

from cutegen_nb.core.errors import UsageError
from cutegen_nb.teaching.assignment import assignment_text, read_assignment

FAULTS = {
    ("[[exercise]]", "[[exercises]]"): "unknown key 'exercises'; there is title, text, exercise",
    ('title = "Work on rows"', ""): "it needs a line such as title",
    ('"rows/1"', '"rows 1"'): "'rows 1' is not a name of an exercise",
    ('"rows/2"', '"rows/1"'): "rows/1 is there twice",
    ('"rows/1"', '"threads/1"'): "threads/1 is an exercise of the lessons",
    ('inputs = ["x"]', 'input = ["x"]'): "rows/2 has an unknown key 'input'",
    ('inputs = ["x"]', "inputs = []"): "rows/2: inputs is []; name the reference's inputs",
    ('title = "sum every row"', ""): "rows/2 has no title",
    ('"split-reduction"', '"split-k"'): "rows/2: there is no strategy 'split-k'; there is coalesced,",
    ('forbidden = ["split-reduction"]', "forbidden = 3"): "rows/2: forbidden is 3; write a list of names",
    ('"vectors-128"', '"vectors"'): "rows/1: there is no strategy 'vectors'",
    ('"sectors"', '"sector"'): "rows/1: there is no count 'sector'; there is threads, sectors,",
    ("at_most = 6144", 'at_most = "6144"'): "rows/1: at_most is '6144'; give a whole number from 1",
    ("at_most = 6144", "at_most = 6144\nmost = 1"): "a target of rows/1 has an unknown key 'most'",
    ('"H200"', '"H2000"'): "no data sheet is known for the GPU 'H2000'",
    ("points = 3", "points = 0"): "rows/2: points is 0; give a whole number from 1",
    ("def scaled(x, s):", "def scaled(x, s:"): "rows/1: its problem cannot be used",
    ("[[exercise.target]]\nstrategy", "[exercise.targets]\nstrategy"): "rows/1 has an unknown key 'targets'",
    ("text = ", "text = 3 # "): "title and text are texts",
    ("points = 2", "points = "): "is not TOML",
}


def test_the_shipped_assignment_states_everything():
    found = read_assignment(str(TOML))
    assert (list(found.exercises), found.most_points) == (["rows/1", "rows/2"], 10)
    text = assignment_text(found)
    assert "2 for a right result of launch(x, s, out)" in text
    assert "1 for the strategy vectors-128" in text
    assert "3 for at most 15,000 estimated nanoseconds on H200" in text
    assert "allowed: every strategy but split-reduction" in text


@pytest.mark.parametrize(("change", "words"), FAULTS.items(), ids=[words[:40] for words in FAULTS.values()])
def test_a_faulty_file_gets_one_sentence(change: tuple[str, str], words: str, tmp_path: Path):
    text = TOML.read_text(encoding="utf-8")
    assert change[0] in text
    path = tmp_path / "a.toml"
    path.write_text(text.replace(*change), encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        read_assignment(str(path))
    assert words in str(refused.value)


@pytest.mark.parametrize("text", ["", "exercise = []", "exercise = 3", 'title = "a"\nexercise = [3]'])
def test_a_file_without_exercises_says_so(text: str, tmp_path: Path):
    (tmp_path / "a.toml").write_text(f'title = "a"\n{text}' if not text.startswith("title") else text)
    with pytest.raises(UsageError, match="it has no exercise"):
        read_assignment(str(tmp_path / "a.toml"))


def test_a_missing_file_says_so(tmp_path: Path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_assignment(str(tmp_path / "a.toml"))
