"""A person's edits on a kernel are carried on to the next one."""

from cutegen_nb.authors.offline.edits import with_edits

BEFORE = '"""Step one."""\n\nTHREADS = 128\n\n\ndef kernel():\n    pass\n'
AFTER = '"""Step one, step two."""\n\nTHREADS = 128\n\n\ndef kernel():\n    return 1\n'


def test_an_edit_elsewhere_is_applied_and_the_title_is_the_new_one():
    merged, conflict = with_edits(BEFORE, AFTER, BEFORE.replace("128", "256"))
    assert (merged, conflict) == (AFTER.replace("128", "256"), "")


def test_an_edit_of_what_the_strategy_changes_is_a_conflict_with_its_place():
    merged, conflict = with_edits(BEFORE, AFTER, BEFORE.replace("pass", "return 2"))
    assert merged == ""
    assert "7" in conflict


def test_no_edit_gives_the_new_kernel():
    assert with_edits(BEFORE, AFTER, BEFORE) == (AFTER, "")


def test_a_constant_is_kept_where_the_strategy_adds_another_beside_it():
    after = AFTER.replace("THREADS = 128\n", "THREADS = 128\nWARPS = THREADS // 32\n")
    merged, conflict = with_edits(BEFORE, after, BEFORE.replace("128", "64"))
    assert (merged, conflict) == (after.replace("128", "64"), "")


def test_a_constant_that_the_strategy_sets_or_leaves_out_is_a_conflict():
    for after in (AFTER.replace("128", "512"), AFTER.replace("THREADS = 128\n", "")):
        assert with_edits(BEFORE, after, BEFORE.replace("128", "64")) == ("", "line 3")
