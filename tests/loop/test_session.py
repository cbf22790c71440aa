from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cutegen_nb.analysis.estimate.targets import find_target
from cutegen_nb.core.errors import Unreachable
from cutegen_nb.core.evaluation import NotJudgedReason, Verdict
from cutegen_nb.core.library import LibraryFamily
from cutegen_nb.core.round import Decision, Reply, Usage
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.session import Budget
from cutegen_nb.core.stage import Stage
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.loop.session import open_session, run_session
from cutegen_nb.testing import examples
from cutegen_nb.testing.examples import failed, passed


def test_rounds_follow_the_menu_and_the_best_is_the_last_improvement(stage, reply_with):
    loop = stage(
        [reply_with(mark) for mark in ("first", "coalesced", "vectors", "unrolled")],
        {
            "first": passed(4000),
            "coalesced": passed(1000),
            "vectors": passed(1000, 300),
            "unrolled": passed(2000),
        },
    )

    session = loop.run()

    assert [item.strategy and item.strategy.name for item in session.rounds] == [
        None,
        "coalesce",
        "vectorise",
        "unroll",
    ]
    assert [item.comparison.relation for item in session.rounds] == [
        Relation.FIRST,
        Relation.LESS_WORK,
        Relation.LESS_WORK,
        Relation.MORE_WORK,
    ]
    assert session.best.number == 2
    assert [item.stage for item in session.rounds] == [Stage.CORRECT, *[Stage.STRUCTURE] * 3]
    assert session.stopped.startswith("every strategy was tried on r2")
    assert session.stopped.endswith("; tried: coalesce (r1), vectorise (r2), unroll (r3)")
    assert loop.store.load("relu") == session


def test_the_next_round_starts_from_the_best_and_not_from_the_latest(stage, reply_with):
    loop = stage(
        [reply_with(mark) for mark in ("first", "worse", "better")],
        {"first": passed(1000), "worse": passed(5000), "better": passed(500)},
    )

    session = loop.run(rounds=3)

    assert loop.model.prompts[2].parent.digest == session.rounds[0].candidate.digest
    assert session.rounds[2].comparison.against == session.rounds[0].candidate.digest
    assert session.stopped == "the budget of 3 rounds is spent"


def test_what_was_rejected_and_why_enters_the_next_prompt(stage, reply_with):
    loop = stage(
        [reply_with(mark) for mark in ("first", "worse", "better")],
        {"first": passed(1000), "worse": passed(5000), "better": passed(500)},
    )

    loop.run(rounds=3)

    assert "r1, coalesce: PASSED, more work" in loop.model.prompts[2].user


def test_a_strategy_that_failed_on_an_older_revision_is_tried_again_after_the_untried(stage, reply_with):
    marks = ("first", "worse", "vectors", "unrolled", "coalesced")
    loop = stage(
        [reply_with(mark) for mark in marks],
        {
            "first": passed(1000),
            "worse": passed(5000),
            "vectors": passed(900),
            "unrolled": passed(950),
            "coalesced": passed(100),
        },
    )

    session = loop.run()

    names = [item.strategy and item.strategy.name for item in session.rounds]
    assert names[:5] == [None, "coalesce", "vectorise", "unroll", "coalesce"]
    assert session.best.number == 4


def test_an_unusable_reply_is_asked_for_again_with_the_reply_and_the_reason(stage, reply_with):
    loop = stage(["I think a kernel would be good.", reply_with("first")], {"first": passed(1000)}, menu=())

    session = loop.run()

    first, second = session.rounds[0].attempts
    assert (first.purpose, second.purpose) == ("generate", "reply")
    assert first.evaluation.outcome.reason is NotJudgedReason.REPLY_UNUSABLE
    assert "holds no code" in second.prompt.user
    assert "I think a kernel would be good." in second.prompt.user
    assert session.rounds[0].approved


def test_three_unusable_replies_end_the_round_and_the_session_goes_on(stage, reply_with):
    truncated = Reply(text="```python\nclass Mod", usage=Usage(output_tokens=9), finish_reason="length")
    loop = stage(["prose", "prose again", truncated, reply_with("first")], {"first": passed(1000)}, menu=())

    session = loop.run()

    assert session.rounds[0].candidate is None
    assert "cut off" in session.rounds[0].note
    assert session.rounds[0].attempts[2].evaluation.label == "not judged: REPLY_UNUSABLE"
    assert session.rounds[1].approved


def test_a_failed_candidate_is_diagnosed_and_repaired(stage, reply_with):
    loop = stage(
        [reply_with("broken"), "Line 2 forgets the tail.", reply_with("cured")],
        {"broken": failed(Verdict.OUT_OF_BOUNDS, "Wrote past the end.", line=2), "cured": passed(1000)},
        menu=(),
    )

    session = loop.run()

    purposes = [attempt.purpose for attempt in session.rounds[0].attempts]
    assert purposes == ["generate", "diagnose", "repair"]
    assert "class ModelNew" in loop.model.prompts[1].user
    assert "> Line 2 forgets the tail." in loop.model.prompts[2].user
    assert session.rounds[0].candidate.parents == (session.rounds[0].attempts[0].candidate.digest,)
    assert session.rounds[0].approved


def test_a_kernel_that_comes_with_its_diagnosis_is_judged_at_once_and_saves_the_second_request(
    stage, reply_with
):
    at_once = f"Line 2 forgets the tail.\n\n```python\n{examples.kernel_source('cured')}```\n"
    loop = stage(
        [reply_with("broken"), at_once],
        {"broken": failed(Verdict.OUT_OF_BOUNDS, "Wrote past the end.", line=2), "cured": passed(1000)},
        menu=(),
    )

    [made] = loop.run(rounds=1).rounds

    assert [attempt.purpose for attempt in made.attempts] == ["generate", "diagnose"]
    assert len(loop.model.prompts) == 2
    assert made.candidate.source == examples.kernel_source("cured")
    assert made.candidate.rationale == "Line 2 forgets the tail."
    assert made.candidate.parents == (made.attempts[0].candidate.digest,)
    assert made.attempts[1].reply.text == at_once
    assert made.approved


def test_a_failed_kernel_of_a_diagnosis_counts_as_a_try_and_is_diagnosed_next(stage, reply_with):
    answers = [reply_with("b0"), reply_with("b1"), "words", reply_with("b2"), "words"]
    broken = failed(Verdict.WRONG_VALUES, "Wrong.")
    loop = stage(answers, dict.fromkeys(("b0", "b1", "b2"), broken))

    [made] = loop.run(rounds=1).rounds

    assert [item.purpose for item in made.attempts] == ["generate", "diagnose", "diagnose", "repair"]
    assert [bool(item.evaluation) for item in made.attempts] == [True, True, False, True]
    assert loop.model.prompts[2].parent.source == examples.kernel_source("b1")


@pytest.mark.parametrize(
    "told",
    [
        f"It is this kernel:\n```python\n{examples.kernel_source('broken')}```\n",
        "Write this:\n```python\nimport torch\nclass ModelNew(torch.nn.Module):\n",
    ],
    ids=["a quotation of what failed", "a file cut short"],
)
def test_code_of_a_diagnosis_that_is_no_repair_stays_words(stage, reply_with, told):
    loop = stage(
        [reply_with("broken"), told, reply_with("cured")],
        {"broken": failed(Verdict.WRONG_VALUES, "Wrong."), "cured": passed(1000)},
        menu=(),
    )

    [made] = loop.run(rounds=1).rounds

    assert [item.purpose for item in made.attempts] == ["generate", "diagnose", "repair"]
    assert made.attempts[1].candidate is None
    assert f"> {told.splitlines()[0]}" in loop.model.prompts[2].user


def test_repairs_are_bounded_and_each_is_evaluated(stage, reply_with):
    marks = ("b0", "b1", "b2")
    answers = [reply_with("b0"), "words", reply_with("b1"), "words", reply_with("b2"), "words"]
    broken = failed(Verdict.WRONG_VALUES, "Wrong.")
    loop = stage(answers, dict.fromkeys(marks, broken))

    session = loop.run(rounds=1)

    assert [a.candidate is not None for a in session.rounds[0].attempts] == [True, False, True, False, True]
    assert all(a.evaluation for a in session.rounds[0].attempts if a.candidate)
    assert not session.rounds[0].approved
    assert session.best is None


def test_an_author_that_cannot_be_reached_stops_the_session_and_resuming_asks_again(stage, reply_with):
    answers = [reply_with("first"), Unreachable("nobody there"), reply_with("better")]
    loop = stage(answers, {"first": passed(1000), "better": passed(500)})

    session = loop.run()
    assert session.stopped == "nobody there"
    assert session.rounds[1].attempts[0].problem == "nobody there"
    assert session.best.number == 0

    resumed = loop.run(rounds=3)
    assert resumed.rounds[:2] == session.rounds
    assert resumed.best.number == 2


def test_an_author_that_declines_the_problem_leaves_a_session_that_says_so(stage):
    loop = stage([], {})

    session = loop.run()

    assert session.stopped == "the script has no more answers"
    assert session.rounds[0].attempts[0].evaluation.label == "not judged: DECLINED"


def test_an_author_that_repeats_a_failing_kernel_is_stopped(stage, reply_with):
    loop = stage([reply_with("broken")] * 4, {"broken": failed(Verdict.WRONG_VALUES, "Wrong.")}, menu=())

    session = loop.run(repairs=0)

    assert len(session.rounds) == 2
    assert "same kernel again" in session.stopped


def test_our_own_failure_to_evaluate_is_recorded_and_stops_the_session(stage, reply_with):
    loop = stage([reply_with("first"), reply_with("unknown")], {"first": passed(1000)})

    session = loop.run()

    assert session.rounds[1].candidate is not None
    assert "no evaluation is recorded" in session.rounds[1].note
    assert session.stopped.startswith("no evaluation could be had")
    assert loop.store.load("relu").rounds == session.rounds


def test_another_problem_under_a_taken_name_gets_a_number(stage, reply_with, monkeypatch):
    stage([reply_with("first")], {"first": passed(1000)}, menu=()).run()
    monkeypatch.setattr(examples, "RELU_SOURCE", examples.RELU_SOURCE + "# another\n")
    loop = stage([reply_with("first")], {"first": passed(1000)}, menu=())

    session = loop.run()

    assert session.name == "relu_2"
    assert loop.store.names() == ("relu", "relu_2")


def test_a_round_is_stored_before_it_is_shown(stage, reply_with):

    loop = stage([reply_with("first")], {"first": passed(1000)}, menu=())
    seen: list[bool] = []

    async def play() -> None:
        session = await open_session(examples.relu_problem(), loop.effects, loop.store, Budget())
        await run_session(
            session,
            loop.effects,
            loop.store,
            on_round=lambda shown, item: seen.append(loop.store.load(shown.name).rounds[-1] == item),
        )

    asyncio.run(play())
    assert seen == [True]


def test_cancelling_keeps_the_finished_rounds(stage, reply_with):

    reached = asyncio.Event()

    class WaitsAtTheSecondPrompt(AutoApprover):
        async def review_prompt(self, session, prompt) -> Decision:
            if session.rounds:
                reached.set()
                await asyncio.Event().wait()
            return await super().review_prompt(session, prompt)

    loop = stage([reply_with("first")], {"first": passed(1000)}, approver=WaitsAtTheSecondPrompt())

    async def play() -> None:
        session = await open_session(examples.relu_problem(), loop.effects, loop.store, Budget())
        running = asyncio.ensure_future(run_session(session, loop.effects, loop.store))
        await reached.wait()
        running.cancel()
        await running

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(play())
    assert len(loop.store.load("relu").rounds) == 1


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({}, "relu"),
        ({"fresh": True}, "relu_2"),
        ({"target": find_target("L4")}, "relu_2"),
        ({"problem": replace(examples.relu_problem(), library=(LibraryFamily.CONV,))}, "relu_2"),
        ({"problem": replace(examples.relu_problem(), source="# another\n")}, "relu_2"),
    ],
)
def test_the_session_of_the_same_problem_policy_and_target_is_resumed_unless_a_fresh_one_is_wanted(
    stage, reply_with, changed, name
):
    first = stage([reply_with("first")], {"first": passed(1000)}, menu=()).run(rounds=1)
    loop = stage([], {}, menu=())
    effects = replace(loop.effects, target=changed.get("target"))
    problem = changed.get("problem", examples.relu_problem())
    opening = open_session(problem, effects, loop.store, Budget(rounds=3), fresh=changed.get("fresh", False))
    session = asyncio.run(opening)
    assert session.name == name
    assert session.rounds == (first.rounds if name == "relu" else ())
    assert session.stopped == ""
    assert loop.store.load(name).stopped == ""
