"""Many problems in turn: each is recorded before the next, none ends the others, and a kill loses one round."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from cutegen_nb.core.errors import (
    ConfigurationError,
    Declined,
    EvaluatorError,
    ProblemError,
    Refused,
    StoreError,
    Unreachable,
)
from cutegen_nb.core.search.campaign import CampaignBudget
from cutegen_nb.core.session import Budget
from cutegen_nb.loop.campaign.variant_run import CampaignProblem
from cutegen_nb.store.campaign_file import read_campaign
from cutegen_nb.testing.landscape import LandscapeAuthor, LandscapeEvaluator

BROKEN = CampaignProblem(name="broken", file="broken.py", problem=None, fault="it has no class Model")
ROOT = Path(__file__).parents[3]


def raising(error: BaseException, name: str = "two", after: int = 0, base: type = LandscapeAuthor) -> type:
    """Author that raises an error for one problem, from the request after `after` rounds on."""

    class Raises(base):
        async def write(self, prompt, session, progress):
            if session.name == name and len(session.rounds) >= after:
                raise error
            return await super().write(prompt, session, progress)

    return Raises


@pytest.fixture
def three(problem_named):
    return [problem_named(name) for name in ("one", "two", "three")]


def test_each_problem_becomes_a_session_and_is_recorded_before_the_next_begins(
    campaign, three, session_of, folder
):
    played = campaign(three)
    assert played.ending is None
    assert played.states == dict.fromkeys(("one", "two", "three"), "budget spent")
    assert [item[:2] for item in played.seen.told if item[0] != "round"] == [
        (kind, name) for name in ("one", "two", "three") for kind in ("begun", "ended")
    ]
    for item in three:
        session = session_of(item.name)
        assert len(session.rounds) == 3
        assert session.problem == item.problem
        entry = played.records[""].entry_of(item.name)
        assert (entry.session, entry.digest, entry.file) == (item.name, item.digest, item.file)
        assert entry.sentence == session.stopped == "the budget of 3 rounds is spent"
    assert len(played.seen.of("round")) == 9
    assert read_campaign(folder) == played.records[""]


def test_the_same_command_again_runs_nothing(campaign, three):
    first = campaign(three)
    again = campaign(three)
    assert again.author.prompts == []
    assert again.seen.told == []
    assert again.records == first.records


def test_a_problem_whose_strategies_are_all_tried_is_finished(campaign, three):
    played = campaign(three[:1], budget=Budget(rounds=20))
    assert played.states == {"one": "finished"}
    assert played.sentence("one").startswith("every strategy was tried")


@pytest.mark.parametrize(
    ("error", "state", "sentence"),
    [
        (Declined("it writes no products"), "declined", "it writes no products"),
        (ProblemError("the inputs are no tensors"), "unusable", "the inputs are no tensors"),
        (
            ValueError("a slip of ours"),
            "failed",
            "ValueError: a slip of ours; this is a fault of cutegen-nb: please report it",
        ),
    ],
)
def test_a_problem_that_fails_is_recorded_with_its_sentence_and_ends_no_other(
    campaign, three, error, state, sentence
):
    played = campaign(three, author=raising(error))
    assert played.ending is None
    assert played.states == {"one": "budget spent", "two": state, "three": "budget spent"}
    assert played.sentence("two") == sentence
    again = campaign(three)
    assert again.seen.told == [], "it is left alone"
    retried = campaign(three, again=True)
    assert retried.states == {"one": "budget spent", "three": "budget spent", "two": "budget spent"}
    assert [entry.name for entry in retried.records[""].entries] == ["one", "three", "two"]


def test_a_file_that_states_no_problem_is_recorded_as_unusable_without_a_session(campaign, three, session_of):
    played = campaign([BROKEN, three[0]])
    assert played.states == {"broken": "unusable", "one": "budget spent"}
    assert played.sentence("broken") == "it has no class Model"
    assert played.records[""].entry_of("broken").session == ""
    assert ("broken", "") not in played.seen.of("begun")
    assert session_of("broken") is None


class NeverJudges(LandscapeEvaluator):
    """Evaluator that fails before anything of the problem `two` is judged."""

    async def evaluate(self, problem, *given, **named):
        if problem.name == "two":
            raise EvaluatorError("the worker died three times")
        return await super().evaluate(problem, *given, **named)


def test_an_evaluator_that_fails_before_any_kernel_is_a_failed_problem(campaign, three):
    played = campaign(three, evaluator=NeverJudges)
    assert played.states["two"] == "failed"
    assert "the worker died three times" in played.sentence("two")
    assert played.states["three"] == "budget spent"


@pytest.mark.parametrize("error", [Unreachable("nobody there"), Refused("the key is wrong")])
def test_a_server_that_does_not_answer_ends_the_campaign_and_the_problem_goes_on_later(
    campaign, three, session_of, error
):
    played = campaign(three, author=raising(error, after=1))
    assert (played.ending.sentence, played.ending.is_fault) == (str(error), True)
    assert played.states == {"one": "budget spent"}
    assert session_of("two").best is not None
    assert session_of("three") is None
    later = campaign(three)
    assert later.states == dict.fromkeys(("one", "two", "three"), "budget spent")
    assert later.seen.of("begun") == [("two", ""), ("three", "")]


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "the disk is full ([Errno 28] No space left on device): free space and run the same command again",
        ),
        (StoreError("the disk is full: sessions.sqlite"), "the disk is full: sessions.sqlite"),
        (ConfigurationError("no key in OPENAI_API_KEY"), "no key in OPENAI_API_KEY"),
    ],
)
def test_what_would_meet_every_problem_ends_the_campaign_in_a_sentence(campaign, three, error, sentence):
    played = campaign(three, author=raising(error))
    assert (played.ending.sentence, played.ending.is_fault) == (sentence, True)
    assert played.states == {"one": "budget spent"}
    assert campaign(three).states == dict.fromkeys(("one", "two", "three"), "budget spent")


def test_a_record_that_cannot_be_written_ends_the_campaign(campaign, three, session_of):
    def fails(folder, record):
        raise StoreError("cannot write campaign.json")

    played = campaign(three, keep=fails)
    assert played.ending.sentence == "cannot write campaign.json"
    assert session_of("one") is not None
    assert session_of("two") is None


def test_an_interrupted_problem_is_taken_up_with_the_rounds_it_had(campaign, three, session_of):
    with pytest.raises(KeyboardInterrupt):
        campaign(three, author=raising(KeyboardInterrupt(), after=2))
    kept = session_of("two")
    assert len(kept.rounds) == 2
    later = campaign(three)
    assert later.seen.of("round") == [("two", "2"), ("three", "0"), ("three", "1"), ("three", "2")]
    assert session_of("two").rounds[:2] == kept.rounds


KILL = """
import sys; sys.path.insert(0, {tests!r})
import os, signal
from pathlib import Path
import conftest

class Killed(conftest.Seen):
    def round_finished(self, session, item):
        if (session.name, item.number) == ("two", 1):
            os.kill(os.getpid(), signal.SIGKILL)

problems = [conftest.problem(name) for name in ("one", "two", "three")]
conftest.run_campaign(Path({folder!r}), problems, observer=Killed())
"""


@pytest.mark.slow
def test_a_killed_campaign_goes_on_and_ends_as_an_undisturbed_one(campaign, three, session_of, folder):
    code = KILL.format(tests=str(Path(__file__).parent), folder=str(folder))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [entry.name for entry in read_campaign(folder).entries] == ["one"]
    assert len(session_of("two").rounds) == 2
    later = campaign(three)
    assert later.seen.of("begun") == [("two", ""), ("three", "")]
    assert later.states == dict.fromkeys(("one", "two", "three"), "budget spent")
    one, two = session_of("one"), session_of("two")
    assert [(item.title, item.candidate.source) for item in two.rounds] == [
        (item.title, item.candidate.source) for item in one.rounds
    ]


def test_a_damaged_session_is_a_failed_problem_and_ends_no_other(campaign, three, folder):
    campaign(three, author=raising(Unreachable("nobody there"), after=1))
    with sqlite3.connect(folder / "sessions.sqlite") as connection:
        connection.execute(
            "UPDATE rounds SET body = '{' WHERE session_id = (SELECT id FROM sessions WHERE name = 'two')"
        )
    connection.close()
    played = campaign(three)
    assert played.states == {"one": "budget spent", "two": "failed", "three": "budget spent"}
    assert "cannot be read" in played.sentence("two")
    assert played.ending is None


def test_a_problem_whose_file_changed_is_run_anew_beside_the_old_session(
    campaign, three, problem_named, session_of
):
    campaign(three[:1])
    changed = problem_named("one", "in other words")
    played = campaign([changed])
    assert played.seen.of("begun") == [("one", "")]
    entry = played.records[""].entry_of("one")
    assert (entry.session, entry.digest) == ("one_2", changed.digest)
    assert session_of("one_2").problem == changed.problem
    assert session_of("one").problem == three[0].problem


def test_a_problem_whose_session_was_taken_away_is_run_again(campaign, three, folder, session_of):
    campaign(three[:2], budget=Budget(rounds=9))
    for path in folder.glob("sessions.sqlite*"):
        path.unlink()
    played = campaign(three[:1], budget=Budget(rounds=9))
    assert played.seen.of("begun") == [("one", "")]
    assert session_of("one").best is not None


def test_a_larger_budget_of_a_problem_goes_on_and_a_smaller_one_does_not(campaign, three, session_of):
    campaign(three[:2], budget=Budget(rounds=2))
    assert campaign(three[:2], budget=Budget(rounds=1)).seen.told == []
    more = campaign(three[:2], budget=Budget(rounds=3))
    assert more.seen.of("round") == [("one", "2"), ("two", "2")]
    assert more.states == dict.fromkeys(("one", "two"), "budget spent")
    assert len(session_of("one").rounds) == 3


def test_the_budget_over_all_ends_the_campaign_and_a_problem_gets_what_the_others_left(
    campaign, three, session_of
):
    # A round takes one request of 110 tokens.
    total = CampaignBudget(tokens=500)
    played = campaign(three, total=total)
    assert played.states == {"one": "budget spent"}
    assert len(session_of("two").rounds) == 2
    assert session_of("two").stopped == "the budget of 170 tokens is spent: 220 were used"
    assert session_of("three") is None
    assert played.ending.is_fault is False
    assert played.ending.sentence == (
        "the budget of 500 tokens over the campaign is spent: 550 tokens were used; "
        "a larger --total-tokens goes on"
    )
    # What the stored sessions spent still counts, and a larger budget goes on where it ended.
    same = campaign(three, total=total)
    assert (same.ending.sentence, same.seen.told) == (played.ending.sentence, [])
    more = campaign(three, total=CampaignBudget(tokens=5000))
    assert more.ending is None
    assert more.seen.of("round") == [("two", "2"), ("three", "0"), ("three", "1"), ("three", "2")]


def test_the_variants_of_a_problem_follow_one_another_each_in_a_store_of_its_own(campaign, three, session_of):
    variants = ("", "schedule=never", "guide=off")
    played = campaign(three[:2], variants=variants)
    assert played.seen.of("begun") == [(name, variant) for name in ("one", "two") for variant in variants]
    assert {name: len(record.entries) for name, record in played.records.items()} == dict.fromkeys(
        variants, 2
    )
    assert session_of("one", "schedule=never").plan.schedule.value == "never"
    assert [part.value for part in session_of("one", "guide=off").plan.without] == ["guide"]
    assert session_of("one").plan.without == ()


def test_a_variant_may_be_a_population(campaign, three, session_of):
    campaign(three[:1], variants=("", "population=2"), budget=Budget(rounds=5))
    chain, evolved = session_of("one"), session_of("one", "population=2")
    assert (chain.epochs, len(chain.rounds)) == ((), 4 if chain.stopped.startswith("every") else 5)
    assert (evolved.plan.population, len(evolved.rounds)) == (2, 5)
    assert evolved.epochs


def test_the_tokens_of_variants_count_together(campaign, three):
    played = campaign(three, variants=("", "guide=off"), total=CampaignBudget(tokens=660))
    assert played.ending.is_fault is False
    assert [len(record.entries) for record in played.records.values()] == [1, 1]
