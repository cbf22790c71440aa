"""Marks in the editor at the lines where an evaluation failed."""

from dataclasses import replace

from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.notebook.review.failed_lines import failed_lines
from cutegen_nb.testing.examples import failed, passed

SOURCE = "a\nb\nc\n"


def found(*findings):
    return failed_lines(replace(failed(Verdict.RACE, "A race."), findings=findings), SOURCE)


def at(line, message="A race.", **more):
    return Finding(kind="race", message=message, line=line, file="candidate.py", **more)


def test_lines_are_in_order_each_with_its_messages_once():
    shown = found(at(3), at(1, "First."), at(3), at(3, "Second."))
    assert shown == [{"line": 1, "message": "First."}, {"line": 3, "message": "A race.\nSecond."}]


def test_flags_library_lines_and_lines_beyond_the_source_have_no_mark():
    library = replace(at(2), file="/usr/lib/python3.11/site-packages/cutlass/cute.py")
    assert found(at(2, severity=Severity.FLAG), library, at(4), at(0)) == []


def test_a_pass_and_no_evaluation_have_none():
    assert failed_lines(passed(1), SOURCE) == failed_lines(None, SOURCE) == []


def test_a_long_message_is_cut():
    (shown,) = found(at(1, "x" * 1000))
    assert len(shown["message"]) < 310
