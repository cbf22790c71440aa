"""Every version of a round's kernel can be gone back to, with its author and its verdict."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cutegen_nb.analysis.history.summary import rows
from cutegen_nb.authors.replay import RecordedEvaluations, ReplayAuthor
from cutegen_nb.core.evaluation import NotJudged, NotJudgedReason, Verdict
from cutegen_nb.core.round import Action, Decision
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.loop.replaying import RecordedDecisions, replay_session
from cutegen_nb.loop.versions import earlier_version
from cutegen_nb.notebook.saved_record import record
from cutegen_nb.report.terminal.session import table
from cutegen_nb.testing import examples
from cutegen_nb.testing.examples import failed, passed

BROKEN = failed(Verdict.WRONG_VALUES, "Wrong.")
MARKS = {"broken": BROKEN, "cured": passed(900), "mine": passed(800)}


class Restores(AutoApprover):
    """Person who writes a version of their own in round 1, goes back to another one, and keeps it if it stands."""

    def __init__(self, mark: str) -> None:
        self._edits = [examples.kernel_source("mine"), examples.kernel_source(mark)]

    async def review_revision(self, session, attempts, comparison) -> Decision:
        if not session.rounds or len(session.rounds) > 1:
            return await super().review_revision(session, attempts, comparison)
        if self._edits:
            edited = self._edits.pop(0)
            return Decision(gate="revision", action=Action.EDIT, by="person:ada", edited=edited)
        stands = attempts[-1].evaluation.passed
        action = Action.APPROVE if stands else Action.REJECT
        return Decision(gate="revision", action=action, by="person:ada")


@pytest.fixture
def restored(stage, reply_with):
    def play(mark: str):
        loop = stage(
            [reply_with("first"), reply_with("broken"), "The tail.", reply_with("cured"), reply_with("last")],
            {"first": passed(1000), **MARKS, "last": passed(700)},
            approver=Restores(mark),
        )
        return loop, loop.run(rounds=3)

    return play


@pytest.mark.parametrize(
    ("mark", "author"), [("broken", "scripted"), ("cured", "scripted"), ("mine", "person:ada")]
)
def test_each_version_is_restored_with_its_author_and_verdict_and_without_a_second_run(
    restored, mark, author
):
    loop, session = restored(mark)
    attempts = session.rounds[1].attempts
    assert [item.purpose for item in attempts] == [
        "optimise", "diagnose", "repair", "edit", "restore",
    ]  # fmt: skip
    back = attempts[-1]
    original = next(item for item in attempts if item.candidate and mark in item.candidate.source)
    assert back.candidate == original.candidate
    assert back.evaluation == original.evaluation
    assert back.candidate.author == author
    assert back.reply is None
    assert session.rounds[1].candidate == original.candidate
    assert session.rounds[1].approved is (mark != "broken")
    # Each of first, cured, mine and last is looked at closer; the restored version is not run again.
    evaluations = 2 * 4 + 1
    assert len(loop.effects.evaluator.tiers) == evaluations
    assert loop.store.load("relu") == session


@pytest.mark.parametrize(("mark", "parent"), [("cured", 1), ("broken", 0)])
def test_the_next_round_starts_from_the_restored_version_if_it_stands(restored, mark, parent):
    loop, session = restored(mark)
    assert loop.model.prompts[-1].parent == session.rounds[parent].candidate
    wanted = "cured" if parent else "first"
    assert loop.model.prompts[-1].parent.source == examples.kernel_source(wanted)


def test_a_source_that_no_attempt_of_the_round_has_is_no_version(restored):
    _, session = restored("cured")
    attempts = session.rounds[1].attempts
    assert earlier_version(attempts, examples.kernel_source("first")) is None
    unjudged = tuple(replace(item, evaluation=None) for item in attempts)
    assert earlier_version(unjudged, examples.kernel_source("cured")) is None


def test_a_round_with_a_restored_version_replays(restored):
    loop, session = restored("cured")
    effects = replace(
        loop.effects,
        author=ReplayAuthor(session),
        evaluator=RecordedEvaluations(session),
        approver=RecordedDecisions(session),
    )
    again = asyncio.run(replay_session(session, effects, loop.store, "again"))
    assert again.stopped == session.stopped
    assert [attempt.purpose for item in again.rounds for attempt in item.attempts] == [
        attempt.purpose for item in session.rounds for attempt in item.attempts
    ]
    assert [item.candidate for item in again.rounds] == [
        replace(item.candidate, author=mine.candidate.author, prompt_digest=mine.candidate.prompt_digest)
        for item, mine in zip(session.rounds, again.rounds, strict=True)
    ]


def test_a_reply_with_the_kernel_that_it_started_from_takes_over_its_verdict_and_says_so(stage, reply_with):
    loop = stage(
        [reply_with("first"), reply_with("second"), reply_with("second"), reply_with("first")],
        {"first": passed(1000), "second": passed(500)},
    )
    session = loop.run(rounds=4)
    again, back = session.rounds[2:]
    assert len(loop.effects.evaluator.tiers) == 2 * 2, "two kernels, each at two tiers"
    assert again.comparison.same_as == "r1"
    assert again.comparison.words == "same kernel as r1"
    assert again.comparison.reason == "nothing was changed, and its verdict stands."
    assert not again.approved
    assert again.decisions[-1].reason == "same kernel as r1: nothing was changed, and its verdict stands."
    assert again.evaluation.passed
    assert again.evaluation.duration_s == 0.0
    assert (back.comparison.same_as, back.comparison.reason) == ("r0", "its verdict stands.")
    assert session.best is session.rounds[1]
    assert [item.relation_words for item in rows(session)][2:] == ["same kernel as r1", "same kernel as r0"]
    assert "same kernel as r1" in table(session)
    assert "same kernel as r1: nothing was changed, and its verdict stands" in record(session)["text/html"]
    assert loop.store.load("relu") == session


def test_a_repair_that_changes_nothing_is_not_evaluated_again_and_the_author_is_told(stage, reply_with):
    loop = stage(
        [reply_with("broken"), "The tail.", reply_with("broken"), "The tail.", reply_with("cured")], MARKS
    )
    session = loop.run(rounds=1)
    found = [item.evaluation for item in session.rounds[0].attempts if item.candidate]
    assert [one.label for one in found] == ["WRONG_VALUES", "WRONG_VALUES", "PASSED"]
    said = "Same kernel as the version before: nothing was changed, and its verdict stands. Wrong."
    assert found[1].summary == said
    assert said in loop.model.prompts[-1].user
    assert len(loop.effects.evaluator.tiers) == 1 + 2


def test_a_repair_that_goes_back_further_is_not_called_the_version_before(stage, reply_with):
    other = {**MARKS, "also broken": MARKS["broken"]}
    answers = ["broken", "also broken", "broken"]
    replies = [item for mark in answers for item in (reply_with(mark), "The tail.")]
    session = stage(replies[:-1], other).run(rounds=1)
    found = [item.evaluation for item in session.rounds[0].attempts if item.candidate]
    assert found[2].summary == "Same kernel as an earlier version: its verdict stands. Wrong."


def test_a_third_kernel_of_the_same_source_says_it_once(stage, reply_with):
    loop = stage([reply_with("first"), *[reply_with("broken")] * 3], {"first": passed(1000), **MARKS})
    session = loop.run(rounds=4, repairs=0)
    assert [item.evaluation.summary for item in session.rounds[2:]] == [
        "Same kernel as r1: its verdict stands. Wrong.",
        "Same kernel as r2: its verdict stands. Wrong.",
    ]


def test_what_was_not_judged_is_judged_when_it_comes_again(stage, reply_with):
    unjudged = replace(BROKEN, outcome=NotJudged(reason=NotJudgedReason.EMPTY_TRACE))
    loop = stage([reply_with("broken"), reply_with("broken")], {"broken": unjudged})
    loop.run(rounds=2, repairs=0)
    assert len(loop.effects.evaluator.tiers) == 2


class Stubborn(AutoApprover):
    """Person who rejects round 1, although it was better, and approves it when it comes again."""

    async def review_revision(self, session, attempts, comparison) -> Decision:
        action = Action.REJECT if len(session.rounds) == 1 else Action.APPROVE
        return Decision(gate="revision", action=action, by="person:ada")


def test_a_better_kernel_that_was_rejected_may_become_the_best_when_it_comes_again(stage, reply_with):
    loop = stage(
        [reply_with("first"), reply_with("second"), reply_with("second")],
        {"first": passed(1000), "second": passed(500)},
        approver=Stubborn(),
    )
    session = loop.run(rounds=3)
    assert session.best is session.rounds[2]
    assert session.best.comparison.same_as == ""
    assert len(loop.effects.evaluator.tiers) == 2 * 2
