"""Every version of a round's kernel can be gone back to, with its author and its verdict."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cutegen_nb.authors.replay import RecordedEvaluations, ReplayAuthor
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.round import Action, Decision
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.loop.replaying import RecordedDecisions, replay_session
from cutegen_nb.loop.versions import earlier_version
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
