from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cutegen_nb.prompting.edits import Edit, EditFault, apply_edits, find_edits

SOURCE = "def a():\n    return 1\n\n\ndef b():\n    return 1\n"


def edit(search: str, replace: str) -> Edit:
    return Edit(search=search, replace=replace)


def test_edits_are_sought_in_the_source_as_given_whatever_their_order():
    done = apply_edits(SOURCE, (edit("def b():\n", "def c():\n"), edit("def a():\n", "def b():\n")))
    assert done == "def b():\n    return 1\n\n\ndef c():\n    return 1\n"


def test_an_anchor_that_occurs_twice_is_refused_with_both_lines():
    found = apply_edits(SOURCE, (edit("    return 1\n", "    return 2\n"),))
    assert isinstance(found, EditFault)
    assert "occurs 2 times (lines 2, 6)" in found.reason


def test_an_anchor_whose_places_overlap_is_refused_too():
    found = apply_edits("x\nx\nx\n", (edit("x\nx\n", "y\n"),))
    assert isinstance(found, EditFault)
    assert "occurs 2 times (lines 1, 2)" in found.reason


def test_an_anchor_that_is_missing_is_answered_with_the_nearest_place():
    found = apply_edits(SOURCE, (edit("def  b():\n    return 2\n", ""),))
    assert isinstance(found, EditFault)
    assert "line 5" in found.reason
    assert "def b():\n    return 1" in found.reason


def test_an_anchor_that_differs_in_white_space_alone_is_told_so():
    found = apply_edits(SOURCE, (edit("def b():\n  return 1\n", ""),))
    assert isinstance(found, EditFault)
    assert "differs in white space only" in found.reason


def test_an_edit_may_hold_the_marks_of_another_format():
    (found,) = find_edits("<<<<<<< SEARCH\na\n=======\nb\n=======\nc\n>>>>>>> REPLACE\n")
    assert (found.search, found.replace) == ("a\n", "b\n=======\nc\n")


def test_an_anchor_matches_whole_lines_only():
    assert isinstance(apply_edits(SOURCE, (edit("return 1\n", "x\n"),)), EditFault)


def test_edits_that_meet_are_refused():
    found = apply_edits(SOURCE, (edit("def a():\n    return 1\n", "x\n"), edit("    return 1\n\n", "y\n")))
    assert isinstance(found, EditFault)
    assert "same lines" in found.reason


def test_an_empty_anchor_is_refused():
    assert isinstance(apply_edits(SOURCE, (edit("", "x\n"),)), EditFault)


def test_an_unfinished_edit_is_refused():
    assert isinstance(find_edits("<<<<<<< SEARCH\na\n=======\nb\n"), EditFault)


def test_a_last_line_without_its_end_can_be_anchored():
    assert apply_edits("x = 1", (edit("x = 1\n", "x = 2\n"),)) == "x = 2\n"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("ab ()=:\t", max_size=6), min_size=1, max_size=12), st.data())
def test_an_edit_that_applies_changes_only_its_lines(lines, data):
    source = "".join(f"{line}\n" for line in lines)
    start = data.draw(st.integers(0, len(lines) - 1))
    stop = data.draw(st.integers(start + 1, len(lines)))
    search = "".join(f"{line}\n" for line in lines[start:stop])
    done = apply_edits(source, (edit(search, "NEW\n"),))
    if isinstance(done, str):
        assert done == "".join(f"{line}\n" for line in [*lines[:start], "NEW", *lines[stop:]])
