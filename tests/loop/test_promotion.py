"""A revision that would become the best is looked at more closely first; a person may overrule."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Tier, Verdict
from cutegen_nb.core.finding import Exhibit
from cutegen_nb.core.round import Action, Relation
from cutegen_nb.loop.gates import ConsoleApprover
from cutegen_nb.testing.examples import failed, passed

ACCUSED = replace(
    failed(Verdict.CHEATED, "No kernel was launched."),
    exhibits=(
        Exhibit(
            kind="no-kernel",
            statement="No kernel was launched.",
            outputs=("output 0, float32[3]: 1, 2, 3",),
            trace=("no kernel was launched",),
        ),
    ),
)


def console(*answers):
    lines, said = iter(answers), []

    async def read_line(question):
        said.append(question)
        return next(lines, None)

    async def edit_text(text, suffix):
        return None

    return ConsoleApprover(person="ada", say=said.append, read_line=read_line, edit_text=edit_text), said


def test_only_what_would_become_the_best_is_looked_at_closer(stage, reply_with):
    marks = ("first", "worse", "better")
    loop = stage(
        [reply_with(mark) for mark in marks],
        {"first": passed(1000), "worse": passed(2000), "better": passed(500)},
    )
    session = loop.run(rounds=3)
    assert loop.effects.evaluator.tiers == [Tier.A, Tier.B, Tier.A, Tier.A, Tier.B]
    assert [item.evaluation.tier for item in session.rounds] == [Tier.B, Tier.A, Tier.B]
    assert session.best.number == 2
    assert any("looking closer" in text for text in loop.progress)


def test_what_fails_the_closer_look_does_not_become_the_best(stage, reply_with):
    wrong = failed(Verdict.WRONG_VALUES, "With inputs scaled by 1000: wrong.")
    loop = stage(
        [reply_with("first"), reply_with("fast")],
        {"first": passed(1000), "fast": passed(10)},
        closer={"fast": wrong},
    )
    session = loop.run(rounds=2, repairs=0)
    assert session.best.number == 0
    assert session.rounds[1].evaluation.summary == "With inputs scaled by 1000: wrong."
    assert session.rounds[1].evaluation.tier is Tier.B
    assert session.rounds[1].decisions[-1].action is Action.REJECT


def test_a_failed_closer_look_is_repaired_like_any_other_failure(stage, reply_with):
    wrong = failed(Verdict.WRONG_VALUES, "With integers: wrong.")
    loop = stage(
        [reply_with("first"), "It sums in bfloat16.", reply_with("repaired")],
        {"first": passed(1000), "repaired": passed(1100)},
        closer={"first": wrong},
        menu=(),
    )
    session = loop.run(rounds=1, repairs=1)
    assert session.best.evaluation.passed
    assert [item.purpose for item in session.rounds[0].attempts] == ["generate", "diagnose", "repair"]


def test_a_person_sees_the_evidence_and_may_overrule_with_a_reason(stage, reply_with):
    approver, said = console("a", "o", "", "o the trace missed the graph's replay")
    loop = stage(
        [reply_with("first")],
        {"first": replace(ACCUSED, profile=passed(9).profile)},
        menu=(),
        approver=approver,
    )
    session = loop.run(rounds=1, repairs=0)
    item = session.rounds[0]
    assert item.approved
    assert item.evaluation.outcome == ACCUSED.outcome, "the verdict and its evidence stay"
    assert item.evaluation.exhibits == ACCUSED.exhibits
    decision = item.decisions[-1]
    assert (decision.action, decision.by) == (Action.OVERRULE, "person:ada")
    assert decision.reason == "the trace missed the graph's replay"
    assert item.comparison.relation is Relation.FIRST
    assert session.best is item
    text = "\n".join(said)
    assert "[o]verrule" in text
    assert "evidence (no-kernel)" in text
    assert "output 0, float32[3]: 1, 2, 3" in text


def test_what_rests_on_no_inference_cannot_be_overruled(stage, reply_with):
    approver, said = console("a", "o because", "r it crashed")
    loop = stage(
        [reply_with("first")], {"first": failed(Verdict.CRASHED, "Crashed.")}, menu=(), approver=approver
    )
    session = loop.run(rounds=1, repairs=0)
    assert not session.rounds[0].approved
    assert any("nothing to overrule" in text for text in said)
    assert not any("[o]verrule" in text for text in said)


def test_a_policy_never_overrules(stage, reply_with):
    loop = stage([reply_with("first")], {"first": ACCUSED}, menu=())
    session = loop.run(rounds=1, repairs=0)
    assert session.rounds[0].decisions[-1].action is Action.REJECT
    assert session.best is None


def test_a_recorded_evaluator_gives_the_tier_that_was_asked_for(stage, reply_with):
    evaluator = stage([], {"first": passed(1)}).effects.evaluator
    candidate = Candidate(
        source=reply_with("first").split("```python\n")[1].removesuffix("```\n"), author="t"
    )
    found = asyncio.run(evaluator.evaluate(None, candidate, lambda _: None, Tier.C))
    assert found.tier is Tier.C
