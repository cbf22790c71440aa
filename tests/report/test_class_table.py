"""Marks of a class as rows and CSV, in which no name is a formula."""

import csv
import io
from pathlib import Path

import pytest

from cutegen_nb.report.class_table import class_csv, class_json, fault_lines, student_rows
from cutegen_nb.teaching.assignment import read_assignment
from cutegen_nb.teaching.class_marks import ClassMarks, MarkedAnswer, StudentMarks

TOML = Path(__file__).parents[2] / "notebooks/assignments/rows/rows.toml"


@pytest.fixture
def marks():
    assignment = read_assignment(str(TOML)) if TOML else pytest.skip("no assignment is shipped")
    (exercise, *_) = assignment.exercises.values()
    answer = MarkedAnswer(exercise=exercise, remark="no cell answers it")
    students = (
        StudentMarks(student="=cmd()", answers=(answer,)),
        StudentMarks(student="ada", answers=(answer,), faults=("ada.ipynb cannot be read",)),
    )
    return ClassMarks(assignment=assignment, students=students, alike=())


def test_no_cell_begins_like_a_formula(marks):
    table = list(csv.reader(io.StringIO(class_csv(marks))))
    assert [row[0] for row in table[1:]] == ["'=cmd()", "ada"]
    assert {len(row) for row in table} == {len(table[0])}


def test_a_missing_answer_is_a_dash_and_remarks_are_counted(marks):
    heading, rows = student_rows(marks)
    assert {len(row) for row in rows} == {2 + 3}
    assert rows[1][-1] == "2"
    assert heading[0] == "student"
    assert len(fault_lines(marks)) == 3


def test_json_has_no_points_for_what_was_not_handed_in(marks):
    found = class_json(marks)
    assert [student["points"] for student in found["students"]] == [0, 0]
    assert found["students"][0]["answers"][0]["verdict"] == "none"
