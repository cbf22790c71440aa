"""The gates as the panel and the magics reach them, without a kernel."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.round import Action, Attempt, Decision, Prompt
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.notebook.approver import Answer, PanelApprover, restoring
from cutegen_nb.testing import examples

PROMPT = Prompt(system="s", user="Write it.", digest="d")


def session() -> Session:
    return Session(
        name="relu",
        problem=examples.relu_problem(),
        facts=examples.relu_facts(),
        device=examples.simulated_device(),
        author="offline",
        budget=Budget(),
        created_at="2026-01-01T00:00:00+00:00",
    )


def attempt(evaluation) -> Attempt:
    candidate = Candidate(source=examples.kernel_source("a"), author="offline")
    return Attempt(purpose="generate", prompt=PROMPT, reply=None, candidate=candidate, evaluation=evaluation)


def at_revision(evaluation, *answers: Answer):
    """Give the answers one after the other; what each said, and the decision."""

    async def deciding():
        approver = PanelApprover(person="ada", on_gate=lambda _: None)
        waiting = asyncio.ensure_future(approver.review_revision(session(), [attempt(evaluation)], None))
        await asyncio.sleep(0)
        said = []
        for answer in answers:
            try:
                said.append(approver.take(answer))
            except UsageError as refusal:
                said.append(refusal)
        return said, await asyncio.wait_for(waiting, 1)

    return asyncio.run(deciding())


def test_a_decision_carries_the_person_and_the_words():
    said, decision = at_revision(examples.passed(10), Answer(action=Action.REJECT, reason=" slow "))
    assert (decision.gate, decision.action, decision.by, decision.reason) == (
        "revision",
        Action.REJECT,
        "person:ada",
        "slow",
    )
    assert "rejected: “slow”" in said[0]


def test_a_rejected_strategy_whose_kernel_passed_is_said_to_come_by_its_name_only():
    def said(evaluation, strategy):
        made = attempt(evaluation)
        made = replace(made, prompt=replace(PROMPT, strategy=strategy))

        async def deciding():
            approver = PanelApprover(person="ada", on_gate=lambda _: None)
            waiting = asyncio.ensure_future(approver.review_revision(session(), [made], None))
            await asyncio.sleep(0)
            words = approver.take(Answer(action=Action.REJECT, reason="512 threads are many"))
            await waiting
            return words

        return asyncio.run(deciding())

    rejected = "Round 0: r0 rejected: “512 threads are many”."
    strategy = examples.strategies()[0]
    again = (
        f"{strategy.name} is not offered again on the same kernel; name it in a steer to try it once more."
    )
    assert said(examples.passed(10), strategy) == f"{rejected} {again}"
    assert said(examples.failed(Verdict.WRONG_VALUES, "wrong"), strategy) == rejected
    assert said(examples.passed(10), None) == rejected


def test_a_comment_is_confirmed_without_the_lines_that_it_quotes():
    words = "On line 9 of r2:\n    THREADS = 256\nTry 128"
    said, _ = at_revision(
        examples.passed(10), Answer(action=Action.STEER, reason=words), Answer(action=Action.APPROVE)
    )
    assert said[0] == "Round 0: r0 steered: “On line 9 of r2: Try 128”."


def test_an_earlier_version_is_restored_under_its_number():
    async def deciding():
        approver = PanelApprover(person="ada", on_gate=lambda _: None)
        made = attempt(examples.passed(10))
        edit = replace(made, candidate=Candidate(source=examples.kernel_source("b"), author="person:ada"))
        waiting = asyncio.ensure_future(approver.review_revision(session(), [made, edit], None))
        await asyncio.sleep(0)
        said = approver.take(restoring(approver.gate, 0))
        return said, await waiting

    said, decision = asyncio.run(deciding())
    assert said == "r0: version 1 restored."
    assert (decision.action, decision.edited) == (Action.EDIT, examples.kernel_source("a"))


def test_a_gate_after_an_interruption_knows_what_was_decided_before_in_its_round():
    said = Decision(gate="revision", action=Action.STEER, by="person:ada", reason="256 threads")

    async def opening(number: int):
        approver = PanelApprover(person="ada", on_gate=lambda _: None)
        approver.resume(number, [said])
        waiting = asyncio.ensure_future(approver.review_revision(session(), [attempt(None)], None))
        await asyncio.sleep(0)
        made = approver.gate.made
        waiting.cancel()
        return made

    assert asyncio.run(opening(0)) == (said,)
    assert asyncio.run(opening(1)) == (), "the words were for another round"


def test_what_failed_cannot_be_approved_and_the_gate_stays_open():
    failed = examples.failed(Verdict.WRONG_VALUES, "3 of 4 elements differ")
    said, decision = at_revision(failed, Answer(action=Action.APPROVE), Answer(action=Action.STOP))
    assert "WRONG_VALUES, and only a kernel that passed can be built upon" in str(said[0])
    assert decision.action is Action.STOP


def test_only_the_first_of_two_clicks_decides():
    said, decision = at_revision(
        examples.passed(10), Answer(action=Action.APPROVE), Answer(action=Action.REJECT)
    )
    assert decision.action is Action.APPROVE
    assert "nothing to reject" in str(said[1])


@pytest.mark.parametrize(
    ("late", "words"),
    [
        (Answer(action=Action.APPROVE, gate="prompt"), "meant for what was shown before"),
        (Answer(action=Action.APPROVE, number=7), "meant for what was shown before"),
        (Answer(action=Action.STEER, reason="  "), "steer needs words"),
        (Answer(action=Action.REJECT), "reject needs words"),
        (Answer(action=Action.EDIT, edited=" "), "edited text is empty"),
        (Answer(action=Action.EDIT, edited=examples.kernel_source("a")), "is what it was"),
        (
            Answer(action=Action.BRANCH, edited="r3"),
            "no passing revision 'r3' to go on from: none passed yet",
        ),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_in_a_sentence(late: Answer, words: str):
    said, decision = at_revision(
        examples.passed(10), late, Answer(action=Action.APPROVE, gate="revision", number=0)
    )
    assert words in str(said[0])
    assert decision.action is Action.APPROVE


def test_nothing_can_be_decided_before_a_gate_is_open():
    approver = PanelApprover(person="ada", on_gate=lambda _: None)
    with pytest.raises(UsageError, match="nothing to approve"):
        approver.take(Answer(action=Action.APPROVE))


def test_an_accusation_may_be_overruled_with_words_and_a_crash_may_not():
    said, decision = at_revision(
        examples.failed(Verdict.CHEATED, "No kernel was launched."),
        Answer(action=Action.OVERRULE),
        Answer(action=Action.OVERRULE, reason="the trace missed it"),
    )
    assert "needs words" in str(said[0])
    assert (decision.action, decision.reason) == (Action.OVERRULE, "the trace missed it")
    said, decision = at_revision(
        examples.failed(Verdict.CRASHED, "Crashed."),
        Answer(action=Action.OVERRULE, reason="no"),
        Answer(action=Action.REJECT, reason="it crashes"),
    )
    assert "is an observed fact, not an inference" in str(said[0])
    assert decision.action is Action.REJECT


def test_a_stop_is_confirmed_with_its_place_and_words():
    said, _ = at_revision(examples.passed(10), Answer(action=Action.STOP, reason="enough"))
    assert said == ["Stopped at r0: “enough”; finished rounds are kept."]

    async def at_prompt():
        approver = PanelApprover(person="ada", on_gate=lambda _: None)
        waiting = asyncio.ensure_future(approver.review_prompt(session(), PROMPT))
        await asyncio.sleep(0)
        said = approver.take(Answer(action=Action.STOP))
        await asyncio.wait_for(waiting, 1)
        return said

    assert asyncio.run(at_prompt()) == "Stopped at the request of round 0; finished rounds are kept."


def at_prompt(*answers: Answer):
    """Give the answers at the prompt gate one after the other; what each said, and the decision."""

    async def deciding():
        approver = PanelApprover(person="ada", on_gate=lambda _: None)
        waiting = asyncio.ensure_future(approver.review_prompt(session(), PROMPT))
        await asyncio.sleep(0)
        said = []
        for answer in answers:
            try:
                said.append(approver.take(answer))
            except UsageError as refusal:
                said.append(str(refusal))
        return said, await asyncio.wait_for(waiting, 1)

    return asyncio.run(deciding())


def test_a_prediction_goes_with_the_request_and_one_of_nothing_measured_is_refused():
    vague = Answer(action=Action.APPROVE, predicted="it will be good")
    clear = Answer(action=Action.APPROVE, predicted="gmem_sectors down 75 %, 2× faster")
    said, decision = at_prompt(vague, clear)
    assert "names nothing that is measured" in said[0]
    assert decision.prediction.counter == "gmem_sectors"
    assert (decision.prediction.change_fraction, decision.prediction.speedup) == (0.75, 2.0)


def test_what_was_measured_already_is_not_predicted():
    said, decision = at_revision(
        examples.passed(10),
        Answer(action=Action.APPROVE, predicted="gmem_sectors down"),
        Answer(action=Action.APPROVE),
    )
    assert "before the request is sent" in str(said[0])
    assert decision.prediction is None
