"""What a person is asked for: a request to carry to a model, or a decision on a revision."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.round import Attempt, Prompt
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.loop.versions import stands
from cutegen_nb.notebook.approver import Gate
from cutegen_nb.notebook.view import Live, overview
from cutegen_nb.notebook.view_detail import told_once
from cutegen_nb.notebook.view_gate import carry_view, gate_view
from cutegen_nb.testing import examples

SESSION = examples.session_of(Relation.FIRST)
ASKED = Prompt(system="Stand by.", user="Write it.", digest="d" * 64, purpose="generate")
REPAIR = replace(ASKED, purpose="repair", user="# What happened\n\nWRONG_VALUES: 3 of 4 differ\n\n# Source\n")


def test_a_request_to_carry_names_what_is_wanted_and_its_size_with_the_standing_instructions():
    view = carry_view(SESSION, ASKED)
    assert view["title"] == "r1 wants a first kernel"
    assert view["size"] == len("Stand by.\n\n---\n\nWrite it.\n")
    assert view["can_skip"] is False
    assert view["happened"] == ""
    assert carry_view(SESSION, None) is None


def test_a_repair_says_what_happened_and_may_be_left_out():
    view = carry_view(SESSION, REPAIR)
    assert view["title"] == "r1 wants a repair of its kernel, which did not pass"
    assert view["happened"] == "WRONG_VALUES: 3 of 4 differ"
    assert view["can_skip"] is True
    assert view["id"] != carry_view(SESSION, replace(REPAIR, digest="e" * 64))["id"]


@pytest.mark.parametrize(
    ("verdict", "can_overrule", "words"),
    [
        (
            Verdict.WRONG_VALUES,
            False,
            "r1 cannot be approved: its verdict is WRONG_VALUES, and only a kernel that passed can be built upon",
        ),
        (Verdict.NOT_OWN_WORK, True, "Reject it, edit it, overrule it with a reason or stop"),
    ],
)
def test_a_revision_that_did_not_pass_cannot_be_approved(verdict, can_overrule, words):
    candidate = Candidate(source=examples.kernel_source("a"), author="offline")
    made = Attempt(
        purpose="optimise",
        prompt=ASKED,
        reply=None,
        candidate=candidate,
        evaluation=examples.failed(verdict, "It did not."),
    )
    gate = Gate(kind="revision", session=SESSION, attempts=(made,))
    view = gate_view(SESSION, gate.with_pending(SESSION), gate)
    assert view["can_approve"] is False
    assert view["can_overrule"] is can_overrule
    assert words in view["why_not"]
    assert [branch["label"] for branch in view["branches"]] == ["r0 · coalesce · best"]


def test_where_an_earlier_version_passed_the_gate_says_that_it_can_be_restored():
    made = [
        Attempt(
            purpose=purpose,
            prompt=ASKED,
            reply=None,
            candidate=Candidate(source=examples.kernel_source(purpose), author="offline"),
            evaluation=evaluation,
        )
        for purpose, evaluation in (
            ("optimise", examples.passed(50)),
            ("edit", examples.failed(Verdict.CRASHED, "It crashed.")),
        )
    ]
    for attempts, words in (
        (made, "edit it, restore the version that passed or stop"),
        (made[1:], "edit it or stop"),
    ):
        gate = Gate(kind="revision", session=SESSION, attempts=tuple(attempts))
        assert words in gate_view(SESSION, gate.with_pending(SESSION), gate)["why_not"]


@pytest.mark.parametrize(
    ("relation", "reason", "told"),
    [
        ("estimated faster", "estimated 4.03× the speed", "Estimated faster: 4.03× the speed"),
        (
            "no clear difference",
            "estimated 1.05× the speed",
            "No clear difference: estimated 1.05× the speed",
        ),
    ],
)
def test_a_comparison_says_estimated_once(relation, reason, told):
    assert told_once(relation, reason) == told


def test_a_kernel_that_was_there_already_says_so_in_the_gate_and_the_list_of_rounds():
    parent = SESSION.rounds[0].candidate
    made = Attempt(
        purpose="optimise",
        prompt=ASKED,
        reply=None,
        candidate=Candidate(source=parent.source, author="offline", parents=(parent.digest,)),
        evaluation=examples.passed(1000),
    )
    compared = Comparison(
        relation=Relation.CANNOT_TELL, reason=stands(made.candidate), against=parent.digest, same_as="r0"
    )
    gate = Gate(kind="revision", session=SESSION, attempts=(made,), comparison=compared)
    view = gate_view(SESSION, gate.with_pending(SESSION), gate)
    assert view["text"].startswith("Same kernel as r0: nothing was changed, and its verdict stands.")
    shown = overview(SESSION, Live(gate=gate), None)["rounds"][1]
    assert (shown["relation"], shown["relation_kind"]) == ("same kernel as r0", "neutral")
