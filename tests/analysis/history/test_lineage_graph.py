"""Nodes of a session's lineage, and their parents."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.history.lineage_graph import lineage, tree
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.round import Action, Decision, Round
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.session import Session
from cutegen_nb.report.html.lineage import lanes, lineage_section, lineage_svg
from cutegen_nb.report.terminal.lineage import lineage_text
from cutegen_nb.testing import examples


def candidate(mark: object, *parents: object, author: str = "openai:small") -> Candidate:
    made_from = tuple(Candidate(source=examples.kernel_source(str(one)), author="").digest for one in parents)
    return Candidate(source=examples.kernel_source(str(mark)), author=author, parents=made_from)


def a_round(number: int, *parents: int, better: bool = True, passes: bool = True) -> Round:
    whole = examples.finished_round(number, Relation.LESS_WORK if better else Relation.MORE_WORK)
    found = examples.passed(100 - number) if passes else examples.failed(Verdict.WRONG_VALUES, "far off")
    attempt = replace(whole.attempts[0], candidate=candidate(number, *parents), evaluation=found)
    action = Action.APPROVE if better and passes else Action.REJECT
    return replace(
        whole,
        attempts=(attempt,),
        comparison=whole.comparison if passes else None,
        decisions=(Decision(gate="revision", action=action, by="policy:auto"),),
    )


def edited(number: int, parent: int) -> Round:
    whole = a_round(number, parent)
    edit = replace(
        whole.attempts[0], purpose="edit", candidate=candidate(f"{number}e", number, author="person:ada")
    )
    return replace(whole, attempts=(*whole.attempts, edit))


def session(*rounds: Round) -> Session:
    return replace(examples.session_of(), rounds=rounds)


@pytest.fixture
def branched() -> Session:
    empty = replace(a_round(4), attempts=())
    return session(
        a_round(0, passes=False),
        a_round(1),
        a_round(2, 1, better=False),
        a_round(3, 1),
        empty,
        edited(5, 3),
        a_round(6, 1, better=False),
        a_round(7, 3, 2),
    )


def test_a_revision_knows_its_parents_and_a_merged_one_both(branched):
    found = {one.label: one.parents for one in lineage(branched).revisions}

    assert found == {
        "r0": (),
        "r1": (),
        "r2": ("r1",),
        "r3": ("r1",),
        "r5.1": ("r3",),
        "r5": ("r5.1",),
        "r6": ("r1",),
        "r7": ("r3", "r2"),
    }
    assert lineage(branched).without == ("r4",)


def test_a_persons_edit_is_a_revision_of_its_own_author_beside_what_it_replaced(branched):
    found = {one.label: one for one in lineage(branched).revisions}

    assert found["r5"].by_person
    assert found["r5"].author == "person:ada"
    assert (found["r5.1"].author, found["r5.1"].decision) == ("openai:small", "edited")
    assert [one.label for one in found.values() if one.best] == ["r7"]


def test_repairs_within_a_round_are_passed_over():
    whole = a_round(1, 0)
    repaired = replace(whole.attempts[0], purpose="repair", candidate=candidate("1 repaired", 1))
    found = lineage(session(a_round(0), replace(whole, attempts=(*whole.attempts, repaired))))

    assert [(one.label, one.parents) for one in found.revisions] == [("r0", ()), ("r1", ("r0",))]


def test_the_tree_draws_every_revision_once_and_the_line_to_the_best_straight_down(branched):
    drawn = tree(lineage(branched))

    assert sorted(one.label for _, one in drawn) == sorted(one.label for one in lineage(branched).revisions)
    assert [one.label for prefix, one in drawn if not prefix] == ["r1", "r3", "r7"]
    assert ("│ ", "r5") in [(prefix, one.label) for prefix, one in drawn]


def test_no_two_lines_of_descent_share_a_lane_at_one_row(branched):
    graph = lineage(branched)
    found = lanes(graph)

    assert found["r1"] == found["r3"] == found["r7"] == 0
    assert found["r5.1"] == found["r5"] != found["r6"]
    assert 0 not in {found["r2"], found["r5"], found["r6"]}


def test_text_and_drawing_say_who_wrote_what_from_what(branched):
    text, picture = lineage_text(branched), lineage_svg(branched)

    assert "r3 + r2" in text
    assert "★ r7" in text
    assert "No candidate came of r4." in text
    assert "r5 from r5.1, by ada: PASSED, less work, approved" in picture
    assert picture.count("stroke-dasharray") == 1
    assert "<title>Lineage of relu: 8 revisions</title>" in picture
    assert lineage_section(session()) == ""


def test_what_a_model_is_called_cannot_leave_the_drawing():
    whole = a_round(0)
    nasty = replace(whole.attempts[0].candidate, author="<script>alert(1)</script>\u202e")
    picture = lineage_svg(session(replace(whole, attempts=(replace(whole.attempts[0], candidate=nasty),))))

    assert "<script" not in picture
    assert "\u202e" not in picture


def test_a_thousand_rounds_in_one_line_are_drawn_short():
    long = session(a_round(0), *(a_round(number, number - 1) for number in range(1, 1000)))

    assert len(tree(lineage(long))) == 1000
    assert len(lineage_section(long)) < 300_000
    assert "Drawn are 200 of 1000 revisions" in lineage_section(long)


def test_a_name_with_a_line_end_forges_no_row_of_the_tree():
    session = examples.session_of(Relation.FIRST)
    attempt = session.rounds[0].attempts[0]
    candidate = replace(attempt.candidate, author="openai:m\n★ r9  –  forged")
    told = replace(
        session, rounds=(replace(session.rounds[0], attempts=(replace(attempt, candidate=candidate),)),)
    )
    assert len(lineage_text(told).splitlines()) == len(lineage_text(session).splitlines())
