"""Marks of a class as rows, CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from cutegen_nb.report.markup import visible
from cutegen_nb.teaching.class_marks import NOT_RUN, ClassMarks, MarkedAnswer, StudentMarks
from cutegen_nb.teaching.likeness import Pair
from cutegen_nb.teaching.marking import COUNTS

_DASH = "–"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters with which a spreadsheet takes a cell for a formula."""

Row = tuple[str, ...]


def student_rows(marks: ClassMarks) -> tuple[Row, list[Row]]:
    """Return the heading and a row a student: points by exercise and in all, and the most alike answer."""
    names = list(marks.assignment.exercises)
    heading = ("student", *names, f"of {marks.assignment.most_points}", "most alike", "remarks")
    return heading, [_student_row(student) for student in marks.students]


def _student_row(student: StudentMarks) -> Row:
    points = [str(answer.points) if answer.checked else _DASH for answer in student.answers]
    near = [answer.nearest for answer in student.answers if answer.nearest]
    most = max(near, key=lambda pair: pair.likeness, default=None)
    remarks = len(list(_remarks(student)))
    alike = f"{other(most, student.student)} {most.likeness:.2f}" if most else _DASH
    return (student.student, *points, str(student.points), alike, str(remarks) if remarks else "")


def other(pair: Pair, student: str) -> str:
    """Return the student of a pair who is not `student`."""
    return pair.second if pair.first == student else pair.first


def alike_rows(marks: ClassMarks) -> list[Row]:
    """Return a row for each two answers that are alike."""
    return [(name, pair.first, pair.second, f"{pair.likeness:.2f}") for name, pair in marks.alike]


def fault_lines(marks: ClassMarks) -> list[str]:
    """Return a sentence for each submission or answer with a remark, after its student's name."""
    return [f"{student.student}: {line}" for student in marks.students for line in _remarks(student)]


def _remarks(student: StudentMarks) -> Iterator[str]:
    yield from student.faults
    for answer in student.answers:
        if answer.remark:
            yield f"{answer.exercise.name}: {answer.remark}"
        if answer.checked and answer.verdict == NOT_RUN:
            yield f"{answer.exercise.name}: {answer.checked.mark.lines[0].text}"


def class_csv(marks: ClassMarks) -> str:
    """Return the marks as CSV, a row an answer; no cell begins like a formula of a spreadsheet."""
    text = io.StringIO()
    heading = ["student", "exercise", "points", "of", "verdict", *COUNTS]
    heading += ["approach", "most alike", "likeness", "remarks"]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heading)
    for student in marks.students:
        for answer in student.answers:
            writer.writerow([_plain(cell) for cell in _csv_row(student, answer)])
    return text.getvalue()


def _csv_row(student: StudentMarks, answer: MarkedAnswer) -> list[object]:
    counts = answer.counts
    near = answer.nearest
    lines = answer.checked.mark.lines if answer.checked else ()
    missing = [line.text for line in lines if line.points < line.of and line.counted]
    return [
        student.student,
        answer.exercise.name,
        answer.points,
        answer.exercise.most_points,
        answer.verdict,
        *(counts.get(name, "") for name in COUNTS),
        " ".join(answer.checked.approach) if answer.checked else "",
        other(near, student.student) if near else "",
        f"{near.likeness:.2f}" if near else "",
        "; ".join([*student.faults, *([answer.remark] if answer.remark else []), *missing]),
    ]


def _plain(cell: object) -> object:
    if not isinstance(cell, str):
        return cell
    text = visible(cell).replace("\n", " ")
    return f"'{text}" if text.startswith(_FORMULA) else text


def class_json(marks: ClassMarks) -> dict[str, Any]:
    """Return the marks as one JSON object."""
    return {
        "assignment": marks.assignment.title,
        "points": marks.assignment.most_points,
        "students": [
            {
                "student": student.student,
                "points": student.points,
                "faults": list(student.faults),
                "answers": [_answer_json(student, answer) for answer in student.answers],
            }
            for student in marks.students
        ],
        "alike": [
            {"exercise": name, "students": [pair.first, pair.second], "likeness": round(pair.likeness, 3)}
            for name, pair in marks.alike
        ],
    }


def _answer_json(student: StudentMarks, answer: MarkedAnswer) -> dict[str, Any]:
    near, checked = answer.nearest, answer.checked
    return {
        "exercise": answer.exercise.name,
        "points": answer.points,
        "of": answer.exercise.most_points,
        "verdict": answer.verdict,
        "parts": [
            {
                "points": part.points,
                "of": part.of,
                "counted": part.counted,
                "text": part.text,
                "line": part.line,
            }
            for part in (checked.mark.lines if checked else ())
        ],
        "counts": answer.counts,
        "approach": dict(checked.approach) if checked else {},
        "most_alike": other(near, student.student) if near else None,
        "likeness": round(near.likeness, 3) if near else None,
        "remark": answer.remark,
        "source": checked.source if checked else "",
    }
