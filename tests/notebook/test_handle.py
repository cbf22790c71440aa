"""A session as the variable of a cell."""

from dataclasses import replace

import pytest

from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.notebook.faults import NotebookUsageError
from cutegen_nb.notebook.handle import SessionHandle, WorkerFunctions, in_blocks
from cutegen_nb.testing.examples import session_of


def handle(session, name="relu"):
    workshop = WorkerFunctions(make=lambda session, candidate: candidate.source, judge=None)
    return SessionHandle(name, lambda: session, workshop)


def test_the_best_and_each_revision_are_found():
    session = session_of(Relation.FIRST, Relation.FASTER, Relation.SLOWER)
    shown = handle(session)
    assert (shown.best.name, shown[2].name) == ("r1", "r2")
    assert shown[2].source == session.rounds[2].candidate.source
    assert shown.best.module() == shown.best.source
    assert repr(shown.best) == "<r1 of relu: PASSED>"


def test_rounds_are_a_table_by_revision():
    table = handle(session_of(Relation.FIRST, Relation.FASTER)).rounds
    assert list(table.index) == ["r0", "r1"]
    assert table.epoch.isna().all()


def test_the_narrow_table_writes_an_estimate_with_its_unit():
    first, second = session_of(Relation.FIRST, Relation.ESTIMATED_FASTER).rounds
    estimated = replace(second, comparison=replace(second.comparison, estimated_s=8.53e-6))
    session = replace(session_of(Relation.FIRST), rounds=(first, estimated))
    table = handle(session).narrow_rounds
    assert table["estimate"].fillna("").to_list() == ["", "8.53 µs"]


def test_a_table_keeps_its_lines_and_prose_is_broken_between_words():
    shown = in_blocks("a    b\n1    <2>\n\nA sentence.").bundle
    assert shown["text/plain"] == "a    b\n1    <2>\n\nA sentence."
    table, prose = shown["text/html"].split("</pre>")[:2]
    assert "white-space:pre;" in table
    assert table.endswith("1    &lt;2&gt;")
    assert "white-space:pre-wrap;" in prose


def test_a_revision_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(NotebookUsageError, match="no revision r7: there is r0"):
        handle(session_of(Relation.FIRST))[7]


def test_before_it_is_open_a_session_says_so():
    waiting = handle(None, name="gelu")
    assert waiting.name == "gelu"
    with pytest.raises(NotebookUsageError, match="gelu is not open yet"):
        _ = waiting.best
    assert "starting" in repr(waiting)
