from __future__ import annotations

from cutegen_nb.report.html.mark import render
from cutegen_nb.teaching.marking import AnswerMark, MarkLine

WRONG = MarkLine(points=0, of=2, text="RACE: a < b", line="line 3: part[i] = x[i] & 1")
NEXT = MarkLine(points=0, of=1, text="at most 136 sectors: comes next", counted=False)


def test_a_mark_shows_its_points_each_part_and_the_line_of_the_cell():
    html = str(render(AnswerMark(exercise="shared/1", title="a sum", lines=(WRONG, NEXT))))
    assert "not solved yet" in html
    assert "shared/1 · a sum: <b>0 of 3 points</b>" in html
    assert "RACE: a &lt; b<br><code>line 3: part[i] = x[i] &amp; 1</code>" in html
    assert html.index("✗") < html.index("–</th>")
    assert "class=" not in html, "a notebook's sanitiser keeps inline styles only"


def test_a_solved_exercise_says_so():
    right = MarkLine(points=3, of=3, text="right on 3 fresh inputs")
    html = str(render(AnswerMark(exercise="threads/3", title="ends", lines=(right,))))
    assert ">solved</span>" in html
    assert "✗" not in html
