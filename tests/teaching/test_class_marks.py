"""A class of honest, wrong and hostile submissions: everyone is marked, by a real evaluator."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

# pytest's importlib mode puts no test folder on the path.
sys.path.insert(0, str(Path(__file__).parent))

from rows_assignment import A_ROW_A_THREAD, SOLUTIONS, TOML, answer, notebook

from cutegen_nb.core.errors import EvaluatorError
from cutegen_nb.evaluator.evaluator import KernelEvaluator
from cutegen_nb.report.class_table import class_csv, class_json, fault_lines, student_rows
from cutegen_nb.report.html.class_page import render
from cutegen_nb.teaching.assignment import read_assignment
from cutegen_nb.teaching.class_marks import mark_class
from cutegen_nb.teaching.submission import read_submissions
from cutegen_nb.wiring import Settings, make_evaluator

ONE, TWO = SOLUTIONS["rows/1"], SOLUTIONS["rows/2"]
ADDED = {
    "prints": "while True:\n    print('x' * 1000)\n",
    "exits": "import os\nos._exit(0)\n",
    "forks": "import os\nwhile True:\n    os.fork()\n",
    "looks": "import cutegen_nb.teaching.marking as m\nm.marked = lambda *a: 1 / 0\nm.COUNTS = {}\n",
}
"""Lines at the end of an answer."""
SAID = {
    "prints": "TIMED_OUT: Not finished after 5 s",
    "exits": "EXITED: The process ended with status 0 and no result",
    "forks": "CRASHED: The candidate had ",
    "kernelless": "The cell has no kernel",
    "=cmd": "Line 2 is not Python: invalid syntax.",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("submitted")
    claims = json.loads(notebook(answer("rows/1", "x = 1"), "points = lambda name: 5"))
    claims["cells"][0]["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": "solved, 5 of 5 points"}
    ]
    written = {
        "ann": notebook(answer("rows/1", ONE), answer("rows/2", TWO)),
        "bob": notebook(answer("rows/2", TWO), answer("rows/2", A_ROW_A_THREAD)),
        "eve": json.dumps(claims),
        "unread": "{",
        "kernelless": notebook(answer("rows/1", "import cutlass.cute as cute\n")),
        "=cmd": notebook(answer("rows/1", "x =")),
        **{name: notebook(answer("rows/1", ONE + tail)) for name, tail in ADDED.items()},
    }
    for name, text in written.items():
        (made / f"{name}.ipynb").write_text(text, encoding="utf-8")
    return made


class _Evaluators:
    """The evaluator, but one with a short deadline for the answer that never ends."""

    def __init__(self):
        self.usual = make_evaluator(Settings(device="simulator"))
        self.short = KernelEvaluator(device="simulator", deadline_s=5.0)

    def __getattr__(self, name):
        return getattr(self.usual, name)

    async def evaluate(self, problem, candidate, *rest):
        chosen = self.short if ADDED["prints"] in candidate.source else self.usual
        return await chosen.evaluate(problem, candidate, *rest)

    async def close(self):
        await self.usual.close()
        await self.short.close()


async def _marks(folder: Path):
    assignment = read_assignment(str(TOML))
    evaluators = _Evaluators()
    try:
        return await mark_class(
            assignment, read_submissions(str(folder), assignment.exercises), lambda _: evaluators, workers=2
        )
    finally:
        await evaluators.close()


@pytest.fixture(scope="module")
def marks(folder, one_template):
    return asyncio.run(_marks(folder))


@pytest.mark.slow
@pytest.mark.long
def test_points_follow_from_the_sources_alone(marks):
    points = {one.student: [answer.points for answer in one.answers] for one in marks.students}
    assert points["ann"] == [5, 5]
    assert points["bob"] == [0, 2], "the last cell counts"
    assert points["eve"] == [0, 0], "what a notebook's output or another cell claims does not count"
    assert points["looks"] == [0, 0], "an answer that reaches for the marking has no points"
    assert sum(map(sum, points.values())) == 12


@pytest.mark.slow
@pytest.mark.long
def test_what_is_wrong_or_hostile_gets_a_sentence_and_stops_nothing(marks):
    rows = {one["student"]: one for one in class_json(marks)["students"]}
    assert len(rows) == 10
    for student, words in SAID.items():
        part = rows[student]["answers"][0]["parts"][0]
        assert words in part["text"]
        assert "\n" not in part["text"]
    assert "it is not JSON in UTF-8" in rows["unread"]["faults"][0]
    assert any("bob: rows/2: 2 cells answer it" in line for line in fault_lines(marks))
    assert any("kernelless: rows/1: The cell has no kernel" in line for line in fault_lines(marks))


@pytest.mark.slow
@pytest.mark.long
def test_counts_approach_and_likeness_are_told(marks):
    rows = {one["student"]: one for one in class_json(marks)["students"]}
    first = rows["ann"]["answers"][0]
    assert first["counts"]["sectors"] == 6144
    assert "vectors-128" in first["approach"]
    assert "warp-a-row" in rows["ann"]["answers"][1]["approach"]
    assert "warp-a-row" not in rows["bob"]["answers"][1]["approach"]
    assert rows["bob"]["answers"][1]["counts"]["sectors"] > rows["ann"]["answers"][1]["counts"]["sectors"]
    assert ("ann", "exits") in {tuple(sorted(one["students"])) for one in class_json(marks)["alike"]}
    heading, table = student_rows(marks)
    assert heading == ("student", "rows/1", "rows/2", "of 10", "most alike", "remarks")
    assert ("unread", "–", "–", "0", "–", "1") in table


@pytest.mark.slow
@pytest.mark.long
def test_page_and_csv_carry_no_code_of_a_student(marks):
    html = str(render(marks))
    assert "<script" not in html
    assert "while True:" in html, "the source is shown"
    assert "x = 1" in html
    lines = class_csv(marks).splitlines()
    assert len(lines) == 1 + 2 * 10
    assert not any(line.startswith("=") for line in lines)
    assert any(line.startswith("'=cmd,rows/1,0,5,not run,") for line in lines)


class _Failing:
    """Evaluator whose every evaluation is lost."""

    async def evaluate(self, *_: object, **__: object):
        raise EvaluatorError("the disk is full")


def test_an_evaluation_that_cannot_be_had_is_told_and_stops_nothing(folder):
    assignment = read_assignment(str(TOML))
    submissions = read_submissions(str(folder), assignment.exercises)
    marks = asyncio.run(mark_class(assignment, submissions, lambda _: _Failing()))
    (ann,) = [one for one in marks.students if one.student == "ann"]
    assert ann.points == 0
    assert "not judged, by no fault of the answer that is known: EvaluatorError: the disk is full" in (
        ann.answers[0].checked.mark.lines[0].text
    )
    assert ann.answers[0].remark == "judge it by hand, or mark again"
