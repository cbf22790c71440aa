"""Sessions that the real loop recorded, with repairs, failures and a person's decisions, played again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from cutegen_nb.app.replay import recording_line, replayed, round_words
from cutegen_nb.authors.replay import ANOTHER_PROMPT, RecordedEvaluations, ReplayAuthor
from cutegen_nb.core.candidate import Candidate, source_digest
from cutegen_nb.core.errors import AuthorError, Declined, EvaluatorError, Unreachable
from cutegen_nb.core.evaluation import Evaluation, Tier, Verdict
from cutegen_nb.core.round import Action, Decision, Prompt, Reply, Round, Usage
from cutegen_nb.core.search.population import MoveKind
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.loop.population.run import refine
from cutegen_nb.loop.session import open_session, run_session
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.report.html import correctness as correctness_view
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples
from cutegen_nb.testing.clock import FixedClock
from cutegen_nb.testing.scripted import RecordedEvaluator, ScriptedModel
from cutegen_nb.wiring import Settings, make_guide


def answer(mark: str) -> str:
    return f"Rationale: {mark}.\n```python\n{examples.kernel_source(mark)}```\n"


class Person(AutoApprover):
    """Edits the second round's kernel by hand, steers the third prompt, rejects the fourth revision."""

    async def review_prompt(self, session, prompt):
        if len(session.rounds) == 2 and "fewer barriers" not in prompt.user:
            return Decision(gate="prompt", action=Action.STEER, by="person:ada", reason="fewer barriers")
        return await super().review_prompt(session, prompt)

    async def review_revision(self, session, attempts, comparison):
        if len(session.rounds) == 1 and attempts[-1].purpose != "edit":
            edited = examples.kernel_source("by hand")
            return Decision(
                gate="revision", action=Action.EDIT, by="person:ada", reason="shorter", edited=edited
            )
        if len(session.rounds) == 3:
            return Decision(gate="revision", action=Action.REJECT, by="person:ada", reason="unreadable")
        return await super().review_revision(session, attempts, comparison)


FOUND = {
    "broken": examples.failed(Verdict.CRASHED, "It crashed.", line=3),
    "first": examples.passed(1000),
    "second": examples.passed(900),
    "by hand": replace(examples.passed(800), tier=Tier.B, duration_s=2.0),
    "third": examples.passed(600),
    "fourth": examples.passed(500),
}
ANSWERS = [
    "no code", answer("broken"), "the index is wrong", answer("first"),
    answer("second"), answer("third"), answer("fourth"), Unreachable("the server went away"),
]  # fmt: skip


@pytest.fixture
def store(tmp_path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / ".cutegen")) as opened:
        yield opened


@pytest.fixture
def recorded(store) -> Session:
    found: dict[str, Evaluation] = {
        source_digest(examples.kernel_source(mark)): value for mark, value in FOUND.items()
    }
    effects = Effects(
        author=ScriptedModel(ANSWERS, menu=examples.strategies(), name="openai:m"),
        evaluator=RecordedEvaluator(examples.relu_facts(), examples.simulated_device(), found),
        approver=Person(),
        clock=FixedClock(step_s=1.0),
        library=shipped_library(),
        progress=lambda _: None,
        guide=make_guide(Settings()),
    )

    async def play() -> Session:
        session = await open_session(examples.relu_problem(), effects, store, Budget(rounds=9))
        return await run_session(session, effects, store)

    return asyncio.run(play())


def without_time(item: Round) -> tuple:
    """What a replay must give back of a round."""
    attempts = [
        (
            attempt.purpose,
            attempt.prompt.system,
            attempt.prompt.user,
            attempt.reply,
            attempt.problem,
            attempt.candidate and attempt.candidate.source,
            attempt.evaluation and attempt.evaluation.outcome,
            attempt.evaluation and attempt.evaluation.profile,
        )
        for attempt in item.attempts
    ]
    decisions = [replace(decision, seconds=0.0) for decision in item.decisions]
    return item.number, item.stage, item.strategy, attempts, item.comparison, decisions, item.note


def test_a_recorded_session_is_replayed_to_its_last_decision(recorded, store):
    assert len(recorded.rounds) >= 4
    seen: list[str] = []
    again = asyncio.run(
        replayed(
            recorded,
            store,
            lambda _: None,
            Settings(),
            on_round=lambda _, item: seen.append(round_words(item)),
        )
    )

    assert [without_time(item) for item in again.rounds] == [without_time(item) for item in recorded.rounds]
    assert again.best.number == recorded.best.number
    assert (again.name, again.author, again.stopped) == ("relu_replay", "replay:relu", recorded.stopped)
    assert store.load("relu_replay").rounds == again.rounds
    assert store.load("relu") == recorded
    assert seen[0].startswith("r0  ")
    assert len(seen) == len(recorded.rounds)


def test_what_is_shown_says_that_it_was_recorded_where_and_when(recorded, store):
    again = asyncio.run(replayed(recorded, store, lambda _: None, Settings()))
    for item in again.rounds:
        if item.evaluation and item.candidate:
            assert item.evaluation.recorded.endswith(f"on NVIDIA A100, session relu, r{item.number}")
            assert item.evaluation.recorded in correctness_view.render(item.evaluation, item.candidate.source)
    words = recording_line(recorded)
    assert "simulator (sm_80), written by openai:m: nothing runs now" in words


def test_a_second_replay_and_the_replay_of_a_replay_have_names_of_their_own(recorded, store):
    first, second = (asyncio.run(replayed(recorded, store, lambda _: None, Settings())) for _ in range(2))
    third = asyncio.run(replayed(first, store, lambda _: None, Settings()))
    assert (second.name, third.name) == ("relu_replay_2", "relu_replay_replay")
    assert [without_time(item)[:3] for item in third.rounds] == [
        without_time(item)[:3] for item in first.rounds
    ]


def test_a_replay_that_goes_another_way_says_where(recorded, store):
    """As after a change of the engine: here a kernel's evaluation is another one."""
    passing = replace(
        recorded,
        rounds=(
            replace(
                recorded.rounds[0],
                attempts=tuple(
                    replace(item, evaluation=examples.passed(1)) if item.candidate else item
                    for item in recorded.rounds[0].attempts
                ),
            ),
            *recorded.rounds[1:],
        ),
    )
    again = asyncio.run(replayed(passing, store, lambda _: None, Settings()))
    assert len(again.rounds) == 1
    assert again.stopped.startswith("the replay differs from relu at r0")


def test_the_author_notes_a_prompt_that_has_changed_and_refuses_another_request(recorded):
    author = ReplayAuthor(recorded)
    empty = replace(recorded, rounds=())
    asked = recorded.rounds[0].attempts[0].prompt

    async def ask(prompt: Prompt, session: Session = empty):
        return await author.write(prompt, session, lambda _: None)

    assert asyncio.run(ask(replace(asked, digest="other"))).notes == (ANOTHER_PROMPT,)
    with pytest.raises(AuthorError, match="the replay of relu ends at r0: a request to reply was recorded"):
        asyncio.run(ask(replace(asked, purpose="diagnose")))
    with pytest.raises(Declined, match="the recorded session relu has ended"):
        asyncio.run(ask(asked, recorded))


def test_a_candidate_that_was_never_judged_is_a_sentence(recorded):
    evaluator = RecordedEvaluations(recorded)
    with pytest.raises(EvaluatorError, match=r"no evaluation of candidate .* is recorded in relu"):
        asyncio.run(evaluator.evaluate(recorded.problem, Candidate(source="x", author="a"), lambda _: None))


def test_the_time_of_a_closer_look_is_counted_once(recorded):
    evaluator = RecordedEvaluations(recorded)
    candidate = Candidate(source=examples.kernel_source("by hand"), author="a")

    async def both() -> float:
        near = await evaluator.evaluate(recorded.problem, candidate, lambda _: None)
        closer = await evaluator.evaluate(recorded.problem, candidate, lambda _: None, Tier.B)
        return near.duration_s + closer.duration_s

    stored = next(
        a.evaluation
        for r in recorded.rounds
        for a in r.attempts
        if a.candidate and a.candidate.digest == candidate.digest
    )
    assert asyncio.run(both()) == stored.duration_s


STATED = """Strategy: own-tiles-{number}
Statement: Give each thread {number} floats. 256 threads a CTA.
Combines: coalesce, vectorise
Brings: vectors-128
Moves: gmem_requests down
"""
DONE = "Done: It gives each thread some floats.\nCarries: none\nNot done: none\n"


class Evolving(ScriptedModel):
    """Model that answers each kind of request, with a kernel or a strategy of its own each time.

    It ends its first strategy with a reason if `ends`.
    """

    ends = False

    async def write(self, prompt, session, progress):
        number = len(self.prompts)
        self.prompts.append(prompt)
        words = {"align": DONE, "invent": STATED.format(number=number), "cross": STATED.format(number=number)}
        if number == 1 and self.ends:
            return Reply(text="Strategy: already done — because line 2 does it.", usage=Usage())
        return Reply(text=words.get(prompt.purpose, answer(f"k{number}")), usage=Usage())


class Pinning(AutoApprover):
    """Pins the first kernel at the end of each epoch."""

    async def review_epoch(self, session, draft):
        if draft.decisions:
            return await super().review_epoch(session, draft)
        return Decision(gate="epoch", action=Action.PIN, by="person:ada", edited="r0", reason="the simplest")


@pytest.mark.parametrize(
    ("strategies", "ends"),
    [(2, False), (2, True), (12, False), (12, True)],
)
def test_a_recorded_population_is_replayed_with_its_words_slots_and_epochs(store, strategies, ends):
    """With few strategies the model has to state its own; with many, others follow one that it ends."""
    first = examples.strategies()[0]
    menu = tuple(replace(first, name=f"step-{number}") for number in range(strategies))
    author = Evolving([], menu=menu, name="openai:m")
    author.ends = ends
    found = {
        source_digest(examples.kernel_source(f"k{number}")): examples.passed(1000 - 9 * number)
        for number in range(99)
    }
    effects = Effects(
        author=author,
        evaluator=RecordedEvaluator(examples.relu_facts(), examples.simulated_device(), found),
        approver=Pinning(),
        clock=FixedClock(step_s=1.0),
        library=shipped_library(),
        progress=lambda _: None,
        guide=make_guide(Settings()),
    )

    async def play() -> tuple[Session, Session]:
        session = await open_session(
            examples.relu_problem(),
            effects,
            store,
            Budget(rounds=99, epochs=3),
            plan=lambda plan: replace(plan, population=2),
        )
        recorded = await refine(session, effects, store)
        return recorded, await replayed(recorded, store, lambda _: None, Settings())

    recorded, again = asyncio.run(play())
    moves = {item.slot.move for item in recorded.rounds if item.slot}
    purposes = {attempt.purpose for item in recorded.rounds for attempt in item.attempts}
    stated = {MoveKind.INVENT} if strategies == 2 else set()
    assert moves >= {MoveKind.EXTEND, *stated}, moves
    assert purposes >= {"generate", "optimise", "align", *(move.value for move in stated)}
    assert len([item for item in recorded.rounds if item.ended]) == ends

    assert [without_time(item) for item in again.rounds] == [without_time(item) for item in recorded.rounds]

    def words_of(session: Session) -> list[tuple]:
        aligned = ((item.slot, item.aligned) for item in session.rounds)
        return [(slot, found and replace(found, by="")) for slot, found in aligned]

    assert words_of(again) == words_of(recorded)
    assert [replace(item, decisions=()) for item in again.epochs] == [
        replace(item, decisions=()) for item in recorded.epochs
    ]
    assert len(again.epochs) == 3
    assert [item.ended for item in again.rounds] == [item.ended for item in recorded.rounds]
    assert again.epochs[0].decisions[0].edited == "r0"
    assert again.best.number == recorded.best.number
    assert store.load("relu_replay").epochs == again.epochs


def test_recorded_counters_and_faults_are_given_back(recorded):
    counted = examples.passed(7).profile
    first = recorded.rounds[1].attempts[0]
    parent = first.prompt.parent
    assert parent is not None
    lost = replace(recorded.rounds[2].attempts[-1], evaluation=None, problem="The GPU was lost.")
    changed = replace(
        recorded,
        rounds=(
            recorded.rounds[0],
            replace(recorded.rounds[1], parent_profile=counted),
            replace(recorded.rounds[2], attempts=(*recorded.rounds[2].attempts[:-1], lost)),
        ),
    )
    evaluator = RecordedEvaluations(changed)
    assert asyncio.run(evaluator.count(changed.problem, parent, lambda _: None)) == counted
    with pytest.raises(EvaluatorError, match=r"no counters of candidate .* are recorded in relu"):
        asyncio.run(evaluator.count(changed.problem, Candidate(source="x", author="a"), lambda _: None))
    with pytest.raises(EvaluatorError, match=r"The GPU was lost\."):
        asyncio.run(evaluator.evaluate(changed.problem, lost.candidate, lambda _: None))
