"""The revision that a round is compared with in the panel."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.core.round import Round
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.session import Session
from cutegen_nb.notebook.review.base import NO_VERSION, PARENT, VersionBase, base_of, base_view
from cutegen_nb.notebook.view import Live, detail
from cutegen_nb.testing import examples

SESSION = examples.session_of(Relation.FIRST, Relation.LESS_WORK, Relation.LESS_WORK)


def test_without_a_pinned_revision_a_round_is_compared_with_its_parent():
    item = SESSION.rounds[2]
    assert base_of(SESSION, item, None, None) == (None, ""), "the example names no parent"
    none = {"pinned": PARENT, "version": NO_VERSION, "parent": "", "note": ""}
    assert base_view(SESSION, item, None, None) == none


def test_a_pinned_revision_is_the_base_of_diff_and_counts():
    shown = detail(SESSION, Live(ended="done"), 2, None, 0)
    assert (shown["old_name"], shown["old"]) == ("r0", SESSION.rounds[0].candidate.source)
    assert shown["base"] == {"pinned": 0, "version": NO_VERSION, "parent": "", "note": ""}
    assert shown["glance"]["against"] == "r0"
    counts = next(tab["body_html"] for tab in shown["tabs"] if tab["id"] == "counts")
    assert ">r0</th>" in counts.replace("</span>", "")


def test_a_round_is_never_compared_with_itself():
    assert base_of(SESSION, SESSION.rounds[1], None, 1) == (None, "")
    assert base_view(SESSION, SESSION.rounds[1], None, 1)["note"]


def test_a_round_without_a_source_is_no_base():
    empty = replace(SESSION.rounds[0], attempts=())
    made = replace(SESSION, rounds=(empty, *SESSION.rounds[1:]))
    assert base_of(made, made.rounds[2], None, 0) == (None, "")
    assert base_of(made, made.rounds[2], None, 7) == (None, "")


def edited_first() -> tuple[Session, Round]:
    """Return a session whose first kernel a person edited: the author's version is attempt 0."""
    first = SESSION.rounds[0]
    made = first.attempts[-1]
    edit = replace(made.candidate, source=f"# mine\n{made.candidate.source}", author="person:ada")
    attempts = (made, replace(made, purpose="edit", candidate=edit))
    first = replace(first, attempts=attempts)
    return replace(SESSION, rounds=(first, *SESSION.rounds[1:])), first


def test_an_edited_first_kernel_is_compared_with_its_authors_version():
    session, first = edited_first()
    chosen = VersionBase(round=0, attempt=0, otherwise=None)
    shown = detail(session, Live(ended="done"), 0, None, chosen)
    assert (shown["old"], shown["old_name"]) == (first.attempts[0].candidate.source, "version 1 of r0")
    assert shown["changes"]
    assert shown["glance"]["against"] == "version 1 of r0"
    assert shown["base"]["version"] == 0
    assert [item["attempt"] for item in shown["versions"]] == [0, 1], "what the panel offers"


def test_a_version_is_no_base_for_itself_nor_for_another_round():
    session, first = edited_first()
    chosen = VersionBase(round=0, attempt=0, otherwise=2)
    assert base_of(session, first, 0, chosen)[1] == "r2"
    assert base_view(session, first, 0, chosen)["version"] == NO_VERSION
    assert base_of(session, session.rounds[1], None, chosen)[1] == "r2"
    assert base_of(session, first, 0, replace(chosen, attempt=1))[1] == "version 2 of r0"
    assert base_of(session, first, None, replace(chosen, attempt=7))[1] == "r2"
