"""The shipped assignment through nbgrader's own commands; `make test-nbgrader` installs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nbgrader", reason="nbgrader is not installed: `make test-nbgrader`")

# pytest's importlib mode puts no test folder on the path.
sys.path.insert(0, str(Path(__file__).parents[1] / "teaching"))

import shutil

from rows_assignment import A_ROW_A_THREAD, FOLDER, SOLUTIONS, TOML, answer

ROOT = Path(__file__).parents[2]
FORGED = "import cutegen_nb\nimport cutegen_nb.notebook.teaching.assignments as a\na.points = cutegen_nb.points = lambda name: 5"
"""Cell that replaces the function which nbgrader's test cells call."""


def run(course: Path, *words: str) -> str:
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": os.pathsep.join(paths)}
    ran = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=course,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


def submit(course: Path, student: str, answers: dict[str, str], before: str = "") -> None:
    """Hand in the released notebook with answers, and a copy of the assignment with an easier target."""
    released = course / "release" / "rows"
    content = json.loads((released / "rows.ipynb").read_text(encoding="utf-8"))
    for cell in content["cells"]:
        name = next(
            (one for one in answers if "".join(cell["source"]).startswith(f"%%cutegen check {one}")), ""
        )
        if name:
            cell["source"] = answer(name, answers[name])
    if before:
        forging = {
            "cell_type": "code",
            "id": "forging",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
        }
        content["cells"].insert(1, {**forging, "source": before})
    folder = course / "submitted" / student / "rows"
    folder.mkdir(parents=True)
    (folder / "rows.ipynb").write_text(json.dumps(content), encoding="utf-8")
    easier = (
        (released / "rows.toml").read_text(encoding="utf-8").replace("at_most = 15000", "at_most = 999999")
    )
    (folder / "rows.toml").write_text(easier, encoding="utf-8")


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("course")
    (made / "nbgrader_config.py").write_text('get_config().CourseDirectory.course_id = "kernels"\n')
    shutil.copytree(FOLDER, made / "source" / "rows")
    run(made, "nbgrader", "generate_assignment", "rows")
    submit(made, "ann", SOLUTIONS)
    submit(made, "bob", {"rows/1": SOLUTIONS["rows/1"], "rows/2": A_ROW_A_THREAD})
    submit(made, "eve", {}, before=FORGED)
    submit(made, "nil", {})
    run(made, "nbgrader", "autograde", "rows")
    return made


def test_the_release_has_no_solution(course: Path):
    released = (course / "release" / "rows" / "rows.ipynb").read_text(encoding="utf-8")
    assert "raise NotImplementedError()" in released
    assert "shuffle_sync" not in released
    assert "%%cutegen check rows/1" in released


def test_the_autograder_takes_the_points_of_the_checks(course: Path):
    """Partial points count, and targets are the lecturer's: bob's file asks for less, and earns him nothing."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        found = {one.student.id: (one.score, one.max_score) for one in book.assignment_submissions("rows")}
    assert found["ann"] == (10, 10)
    assert found["bob"] == (7, 10)
    assert found["nil"] == (0, 10)
    assert found["eve"] == (10, 10), "a test cell runs in the student's kernel, where names can be replaced"


def test_the_marks_of_the_same_folder_cannot_be_forged(course: Path):
    found = json.loads(run(course, "cutegen_nb", "mark", str(TOML), "submitted", "--json"))
    assert {one["student"]: one["points"] for one in found["students"]} == {
        "ann": 10,
        "bob": 7,
        "eve": 0,
        "nil": 0,
    }
