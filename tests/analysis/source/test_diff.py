from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutegen_nb.analysis.source.diff import (
    LineKind,
    apply,
    changed_ranges,
    changed_spans,
    diff,
    split_lines,
)
from cutegen_nb.core.errors import UsageError

LINES = st.lists(
    st.sampled_from(["a = 1", "b = 2", "", "    return a", "a = 2", "x\ry", "z\u2028w", "é\tü"]), max_size=25
)
TEXTS = st.tuples(LINES, st.booleans()).map(lambda pair: "\n".join(pair[0]) + ("\n" if pair[1] else ""))


@settings(max_examples=200, deadline=None)
@given(old=TEXTS, new=TEXTS, context=st.integers(0, 4))
def test_all_hunks_give_the_new_text_and_none_the_old(old, new, context):
    difference = diff(old, new, context)
    assert apply(old, difference, {hunk.number for hunk in difference.hunks}) == new
    assert apply(old, difference, set()) == old
    assert difference.empty == (old == new)


@settings(max_examples=100, deadline=None)
@given(old=TEXTS, new=TEXTS)
def test_every_shown_line_is_the_line_of_its_number(old, new):
    before, after = split_lines(old), split_lines(new)
    for hunk in diff(old, new).hunks:
        for line in hunk.lines:
            if line.old_number:
                assert before[line.old_number - 1].rstrip("\n") == line.text
            if line.new_number:
                assert after[line.new_number - 1].rstrip("\n") == line.text


def test_one_of_two_hunks_changes_only_its_own_lines():
    old = "".join(f"line {i}\n" for i in range(40))
    new = old.replace("line 3\n", "line three\n").replace("line 33\n", "line thirty-three\n")
    difference = diff(old, new)
    assert [hunk.number for hunk in difference.hunks] == [1, 2]
    assert apply(old, difference, {2}) == old.replace("line 33\n", "line thirty-three\n")


def test_an_unknown_hunk_is_named():
    with pytest.raises(UsageError, match="no hunk 7: this change has hunks 1 to 1"):
        apply("a\n", diff("a\n", "b\n"), {7})


def test_hunks_of_another_text_are_refused():
    with pytest.raises(UsageError, match="made from another text"):
        apply("c\nd\n", diff("a\nd\n", "b\nd\n"), {1})


def test_an_edited_line_marks_the_words_that_changed():
    old, new = "    grid = (count + THREADS) // THREADS", "    grid = (count + WIDTH) // THREADS"
    spans_old, spans_new = changed_spans(old, new)
    assert [old[a:b] for a, b in spans_old] == ["THREADS"]
    assert [new[a:b] for a, b in spans_new] == ["WIDTH"]
    removed, added = diff(old, new).hunks[0].lines
    assert (removed.kind, added.kind) == (LineKind.REMOVED, LineKind.ADDED)
    assert (removed.changed, added.changed) == (spans_old, spans_new)


def test_a_changed_phrase_is_one_mark():
    old, new = 'say "one element a thread"', 'say "neighbours share a thread"'
    (span,), _ = changed_spans(old, new)
    assert old[span[0] : span[1]] == "one element"


def test_lines_that_have_nothing_in_common_carry_no_marks():
    lines = diff("import torch\n", "@cute.kernel\n").hunks[0].lines
    assert all(line.changed == () for line in lines)


def test_a_missing_last_line_end_is_a_difference():
    difference = diff("a\nb\n", "a\nb")
    assert not difference.empty
    assert [line.no_newline for line in difference.hunks[0].lines] == [False, False, True]


@pytest.mark.timeout(300)  # against a comparison that grows with the square of the lines, not for speed
def test_a_large_rewrite_is_compared():
    old = "".join(f"value_{i} = {i}\n" for i in range(1500))
    new = "".join(f"other_{i} = {i * 3}\n" for i in range(1500))
    assert apply(old, diff(old, new), {1}) == new


@settings(max_examples=100)
@given(old=TEXTS, new=TEXTS)
def test_outside_the_changed_ranges_both_texts_are_the_same(old, new):
    at_old = at_new = 0
    for old_start, old_stop, new_start, new_stop in changed_ranges(old, new):
        assert old[at_old:old_start] == new[at_new:new_start]
        at_old, at_new = old_stop, new_stop
    assert old[at_old:] == new[at_new:]
    assert (changed_ranges(old, new) == ()) is (old == new)


def test_in_an_edited_line_only_the_words_that_differ_are_marked():
    old, new = "a = 1\nvalue = first + 2\n", "a = 1\nvalue = second + 2\nadded\n"
    marked = [(old[a:b], new[c:d]) for a, b, c, d in changed_ranges(old, new)]
    assert marked == [("first", "second"), ("", "added\n")]
