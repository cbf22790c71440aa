"""A revision that would become the best is looked at more closely first; a person may overrule."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.evaluation import Tier, Verdict
from cutegen_nb.core.finding import Exhibit, Finding, Severity
from cutegen_nb.core.round import Action
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.timing import BaselineTiming, Timing
from cutegen_nb.loop.gates import ConsoleApprover
from cutegen_nb.testing.examples import failed, passed, simulated_device

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
    assert any("is an observed fact, not an inference" in text for text in said)
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


def test_a_provisional_pass_does_not_become_the_best_and_says_what_did_not_run(stage, reply_with):
    unsure = replace(passed(10), provisional=("values-outside: the disk is full",))
    loop = stage(
        [reply_with("first"), reply_with("unsure")],
        {"first": passed(1000), "unsure": passed(10)},
        closer={"unsure": unsure},
    )
    session = loop.run(rounds=2)
    assert session.best.number == 0
    decision = session.rounds[1].decisions[-1]
    assert decision.action is Action.REJECT
    assert decision.reason == "provisional: values-outside: the disk is full; evaluate it again"


def test_a_policy_approves_no_flag_that_accuses_and_a_person_may(stage, reply_with):
    flag = Finding(kind="patched", message="It changes torch.relu.", severity=Severity.FLAG)
    flagged = replace(passed(1000), findings=(flag, flag))
    loop = stage([reply_with("first")], {"first": flagged}, menu=())
    session = loop.run(rounds=1)
    assert session.best is None
    assert session.rounds[0].decisions[-1].reason == (
        "Only a person approves what is flagged so: patched: It changes torch.relu."
    )
    approver, said = console("a", "a")
    again = stage([reply_with("first")], {"first": flagged}, menu=(), approver=approver)
    assert again.run(rounds=2).best is not None
    assert any("flagged: It changes torch.relu." in text for text in said)


def test_a_flag_that_accuses_nobody_stops_no_policy(stage, reply_with):
    flag = Finding(kind="fewer-operations", message="It needs half the FLOPs.", severity=Severity.FLAG)
    loop = stage([reply_with("first")], {"first": replace(passed(1000), findings=(flag,))}, menu=())
    assert loop.run(rounds=1).best is not None


def on_gpu(ms: float):
    eager = BaselineTiming(
        name="eager", median_ms=1.0, speedup=1 / ms, speedup_low=0.999 / ms, speedup_high=1.001 / ms
    )
    timing = Timing(median_ms=ms, samples_ms=(ms,), baselines=(eager,), bandwidth_bytes_per_s=1.5e12)
    return replace(passed(1000), profile=None, timing=timing, duration_s=1.0)


def test_on_a_gpu_a_round_is_one_evaluation_and_what_is_no_faster_is_spared_the_closer_checks(
    stage, reply_with
):
    loop = stage(
        [reply_with("first"), reply_with("slower"), reply_with("faster")],
        {"first": on_gpu(1.0), "slower": on_gpu(1.2), "faster": on_gpu(0.5)},
        device=replace(simulated_device(), kind=DeviceKind.GPU),
    )
    session = loop.run(rounds=3)
    assert loop.effects.evaluator.tiers == [Tier.B, Tier.B, Tier.B]
    assert [item.evaluation.tier for item in session.rounds] == [Tier.B, Tier.A, Tier.B]
    assert [item.gpu_s for item in session.rounds] == [1.0, 1.0, 1.0]
    assert [item.approved for item in session.rounds] == [True, False, True]
