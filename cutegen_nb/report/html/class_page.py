"""Page of a class's marks as one HTML file that needs no script, network or kernel."""

from __future__ import annotations

from markupsafe import Markup

from cutegen_nb.report.class_table import alike_rows, other, student_rows
from cutegen_nb.report.markup import Style, fill
from cutegen_nb.teaching.class_marks import ALIKE, ClassMarks, MarkedAnswer, StudentMarks


def render(marks: ClassMarks) -> Markup:
    """Return the whole page: points by student, answers that are alike, and every answer with its source."""
    heading, rows = student_rows(marks)
    # The first column names the student; the two last are words.
    columns = [(name, 0 < place < len(heading) - 2) for place, name in enumerate(heading)]
    return fill(
        "class_page",
        Style.PAGE,
        title=marks.assignment.title,
        facts=[
            ("Submissions", str(len(marks.students))),
            ("Exercises", ", ".join(marks.assignment.exercises)),
            ("Points", str(marks.assignment.most_points)),
        ],
        columns=columns,
        rows=rows,
        alike=alike_rows(marks),
        limit=f"{ALIKE:.1f}",
        students=[_student(student) for student in marks.students],
    )


def _student(student: StudentMarks) -> dict[str, object]:
    return {
        "name": student.student,
        "points": student.points,
        "faults": student.faults,
        "answers": [_answer(student.student, answer) for answer in student.answers],
    }


def _answer(student: str, answer: MarkedAnswer) -> dict[str, object]:
    near, checked = answer.nearest, answer.checked
    return {
        "exercise": answer.exercise,
        "points": answer.points,
        "verdict": answer.verdict,
        "passed": answer.verdict == "PASSED",
        "remark": answer.remark,
        "parts": checked.mark.lines if checked else (),
        "counts": list(answer.counts.items()),
        "approach": [(name.value, figure) for name, figure in checked.approach.items()] if checked else [],
        "alike": f"{near.likeness:.2f} with {other(near, student)}" if near else "",
        "source": checked.source if checked else "",
    }
