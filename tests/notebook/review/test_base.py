"""The revision that a round is compared with in the panel."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.notebook.review.base import PARENT, base_round, base_view
from cutegen_nb.notebook.view import Live, detail
from cutegen_nb.testing import examples

SESSION = examples.session_of(Relation.FIRST, Relation.LESS_WORK, Relation.LESS_WORK)


def test_without_a_pinned_revision_a_round_is_compared_with_its_parent():
    item = SESSION.rounds[2]
    assert base_round(SESSION, item, None) is None, "the example names no parent"
    assert base_view(SESSION, item, None) == {"pinned": PARENT, "name": "", "note": ""}


def test_a_pinned_revision_is_the_base_of_diff_and_counts():
    shown = detail(SESSION, Live(ended="done"), 2, None, 0)
    assert (shown["old_name"], shown["old"]) == ("r0", SESSION.rounds[0].candidate.source)
    assert shown["base"] == {"pinned": 0, "name": "r0", "note": ""}
    assert shown["glance"]["against"] == "r0"
    counts = next(tab["body_html"] for tab in shown["tabs"] if tab["id"] == "counts")
    assert ">r0</th>" in counts.replace("</span>", "")


def test_a_round_is_never_compared_with_itself():
    assert base_round(SESSION, SESSION.rounds[1], 1) is None
    assert base_view(SESSION, SESSION.rounds[1], 1)["note"]


def test_a_round_without_a_source_is_no_base():
    empty = replace(SESSION.rounds[0], attempts=())
    made = replace(SESSION, rounds=(empty, *SESSION.rounds[1:]))
    assert base_round(made, made.rounds[2], 0) is None
    assert base_round(made, made.rounds[2], 7) is None
