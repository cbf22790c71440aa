"""Rounds that were interrupted go on with the replies, verdicts and decisions that they had."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from cutegen_nb.core.errors import Declined, Unreachable
from cutegen_nb.core.evaluation import Tier, Verdict
from cutegen_nb.core.round import Action, Decision, Prompt, Reply, Usage
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.loop.resuming import stop_round
from cutegen_nb.loop.session import decided_before, waiting_round
from cutegen_nb.testing import examples


class Killed(Exception):
    """Stands for the end of the process."""


@dataclass
class Person:
    """Person who decides as written, and whose kernel of the notebook dies where nothing is written."""

    prompts: list[Decision] = field(default_factory=list)
    revisions: list[Decision] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    seen: list[Prompt] = field(default_factory=list)

    async def review_prompt(self, session, prompt):
        self.seen.append(prompt)
        return self._next("prompt", self.prompts)

    async def review_revision(self, session, attempts, comparison):
        return self._next("revision", self.revisions)

    async def review_epoch(self, session, draft):
        raise AssertionError

    def _next(self, gate, decisions):
        self.asked.append(gate)
        if not decisions:
            raise Killed
        return decisions.pop(0)


def by_person(gate, action, **members):
    return Decision(gate=gate, action=action, by="person:ada", **members)


def test_a_judged_revision_waits_at_its_gate_and_is_neither_asked_nor_judged_again(stage, reply_with):
    approve = by_person("prompt", Action.APPROVE)
    first = stage([reply_with("one")], {"one": examples.passed(1000)}, approver=Person(prompts=[approve]))
    with pytest.raises(Killed):
        first.run(rounds=1)

    person = Person(revisions=[by_person("revision", Action.APPROVE)])
    again = stage([], {}, approver=person)
    session = again.run(rounds=1)

    assert person.asked == ["revision"], "the prompt was approved before"
    assert again.model.prompts == []
    assert again.effects.evaluator.tiers == []
    [made] = session.rounds
    assert made.evaluation.passed
    assert [item.action for item in made.decisions] == [Action.APPROVE, Action.APPROVE]
    assert again.store.intermediates(session.name) == (), "a stored round needs them no more"


def stopped(loop, made, *, is_answered=False):
    """Run a loop until a person stops it while a reply to the first request is out, or judged."""
    approver = loop.effects.approver
    approver.prompts = [made]
    if not is_answered:

        async def cut(prompt, session, progress):
            raise Killed

        loop.model.write = cut
    with pytest.raises(Killed):
        loop.run(rounds=1)
    stop_round(
        loop.store, "relu", "person:ada stopped the session in round 0", approver.seen[0], "person:ada"
    )
    return approver.seen[0]


@pytest.mark.parametrize("edited", ["", "My own request."])
def test_a_request_that_was_out_when_a_person_stopped_is_asked_about_again(stage, reply_with, edited):
    made = by_person("prompt", Action.EDIT if edited else Action.APPROVE, edited=edited)
    request = stopped(stage([], {}, approver=Person()), made)
    approve = by_person("prompt", Action.APPROVE)
    person = Person(prompts=[approve])
    cut = stage([reply_with("one")], {"one": examples.passed(1000)}, approver=person)
    with pytest.raises(Killed):
        cut.run(rounds=1)  # at the gate of its revision
    assert person.asked == ["prompt", "revision"]
    assert [person.seen[0].user, cut.model.prompts[0].user] == [edited or request.user] * 2

    again = stage([], {}, approver=Person(revisions=[by_person("revision", Action.APPROVE)]))
    [item] = again.run(rounds=1).rounds
    assert again.effects.approver.asked == ["revision"], "it was approved again, and answered"
    assert [one.action for one in item.decisions] == [made.action, Action.APPROVE]


def test_a_request_that_was_answered_before_a_person_stopped_is_not_asked_about_again(stage, reply_with):
    found = {"one": examples.passed(1000)}
    first = stage([reply_with("one")], found, approver=Person())
    stopped(first, by_person("prompt", Action.APPROVE), is_answered=True)
    person = Person(revisions=[by_person("revision", Action.APPROVE)])
    again = stage([], {}, approver=person)
    again.run(rounds=1)
    assert person.asked == ["revision"]


def test_the_time_of_a_round_includes_what_came_before_the_interruption(stage, reply_with):
    took_long = Reply(text=reply_with("one"), usage=Usage(seconds=400.0))
    judged = replace(examples.passed(1000), duration_s=50.0)
    approve = by_person("prompt", Action.APPROVE)
    first = stage([took_long], {"one": judged}, approver=Person(prompts=[approve]))
    with pytest.raises(Killed):
        first.run(rounds=1)
    assert first.effects.evaluator.tiers == [Tier.A, Tier.B]

    again = stage([], {}, approver=Person(revisions=[by_person("revision", Action.APPROVE)]))
    [made] = again.run(rounds=1).rounds
    assert 500 < made.seconds < 520


def test_a_persons_words_and_edits_outlive_the_process(stage, reply_with):
    steer = by_person("prompt", Action.STEER, reason="128 threads")
    person = Person(prompts=[steer, by_person("prompt", Action.APPROVE)])
    edit = by_person("revision", Action.EDIT, edited=examples.kernel_source("edited"))
    person.revisions = [edit]
    found = {"one": examples.passed(1000), "edited": examples.passed(1000)}
    first = stage([reply_with("one")], found, approver=person)
    with pytest.raises(Killed):
        first.run(rounds=1)

    person = Person(revisions=[by_person("revision", Action.APPROVE)])
    again = stage([], {}, approver=person)
    [made] = again.run(rounds=1).rounds

    assert person.asked == ["revision"]
    assert made.candidate.source == examples.kernel_source("edited")
    assert [item.reason for item in made.decisions][:1] == ["128 threads"]


def test_a_repair_goes_on_after_the_verdicts_that_were_there(stage, reply_with):
    first = stage(
        [reply_with("wrong"), "It is the index.", Unreachable("no connection")],
        {"wrong": examples.failed(Verdict.WRONG_VALUES, "wrong")},
    )

    async def killed(prompt, session, progress, write=first.model.write):
        if prompt.purpose == "repair":
            raise Killed
        return await write(prompt, session, progress)

    first.model.write = killed
    with pytest.raises(Killed):
        first.run(rounds=1)

    again = stage([reply_with("right")], {"right": examples.passed(1000)})
    [made] = again.run(rounds=1).rounds
    assert [prompt.purpose for prompt in again.model.prompts] == ["repair"]
    assert [item.purpose for item in made.attempts] == ["generate", "diagnose", "repair"]
    assert made.evaluation.passed


@pytest.mark.parametrize("error", [Declined("the person asked for no repair"), Unreachable("no connection")])
def test_an_edit_in_the_place_of_a_repair_that_did_not_come_outlives_the_process(stage, reply_with, error):
    edit = by_person("revision", Action.EDIT, edited=examples.kernel_source("mine"))
    person = Person(prompts=[by_person("prompt", Action.APPROVE)], revisions=[edit])
    found = {"wrong": examples.failed(Verdict.WRONG_VALUES, "wrong"), "mine": examples.passed(1000)}
    first = stage([reply_with("wrong"), "", error], found, approver=person)
    with pytest.raises(Killed):
        first.run(rounds=1)

    person = Person(revisions=[by_person("revision", Action.APPROVE)])
    again = stage([reply_with("late")], {"late": examples.failed(Verdict.CRASHED, "late")}, approver=person)
    [made] = again.run(rounds=1).rounds

    assert person.asked == ["revision"], "it waits at the gate at which it stood"
    assert again.model.prompts == [], "a repair that did not come is not asked for again"
    assert [item.purpose for item in made.attempts] == ["generate", "diagnose", "repair", "edit"]
    assert made.attempts[2].problem == str(error)
    assert made.candidate.source == examples.kernel_source("mine")
    assert made.evaluation.passed


def test_another_author_is_asked_although_the_first_had_answered(stage, reply_with):
    first = stage([reply_with("one")], {"one": examples.passed(1000)}, approver=Person(
        prompts=[by_person("prompt", Action.APPROVE)]
    ))  # fmt: skip
    with pytest.raises(Killed):
        first.run(rounds=1)

    again = stage([reply_with("two")], {"two": examples.passed(1000)}, approver=AutoApprover())
    again.model.name = "another"
    [made] = again.run(rounds=1).rounds
    assert made.candidate.source == examples.kernel_source("two")


def test_a_judged_edit_is_not_lost_to_a_reply_that_came_after_it(stage, reply_with):
    edits = [
        by_person("revision", Action.EDIT, edited=examples.kernel_source(mark)) for mark in ("mine", "better")
    ]
    words = by_person("revision", Action.STEER, reason="256 threads")
    person = Person(prompts=[by_person("prompt", Action.APPROVE)], revisions=[words, *edits])
    found = {mark: examples.passed(1000) for mark in ("one", "mine", "better")}
    first = stage([reply_with("one")], found, approver=person)
    with pytest.raises(Killed):
        first.run(rounds=1)

    person = Person(revisions=[by_person("revision", Action.APPROVE)])
    again = stage([reply_with("two")], {"two": examples.passed(1000)}, approver=person)
    again.model.name = "another"
    [made] = again.run(rounds=1).rounds
    sources = [item.candidate.source for item in made.attempts]
    assert sources == [examples.kernel_source(mark) for mark in ("two", "mine", "better")]
    assert [item.action.value for item in made.decisions] == ["approve", "steer", "edit", "edit", "approve"]
    assert person.asked == ["revision"]


def test_each_result_of_a_round_is_kept_under_its_own_question(stage, reply_with):
    """Each question has an identity of its own, so that no answer stands for another."""
    better = examples.passed(sectors=10)
    approve = by_person("prompt", Action.APPROVE)
    first = stage([reply_with("one")], {"one": better}, approver=Person(prompts=[approve]))
    with pytest.raises(Killed):
        first.run(rounds=1)
    assert first.effects.evaluator.tiers == [Tier.A, Tier.B]
    kept = first.store.intermediates("relu")
    assert len({item.question for item in kept}) == len(kept) == 4


def test_a_session_that_was_stopped_does_not_stop_there_again(stage, reply_with):
    first = stage([], {}, approver=Person(prompts=[by_person("prompt", Action.STOP)]))
    assert first.run(rounds=1).stopped
    assert first.store.load("relu").rounds == (), "a request that was not sent is no round"
    again = stage([reply_with("one")], {"one": examples.passed(1000)}, approver=AutoApprover())
    session = again.run(rounds=1)
    assert again.model.prompts[0].purpose == "generate"
    assert session.best is session.rounds[0]


def stopped_at_revision(stage, reply_with) -> None:
    """Leave a session of one round, whose person stopped at the revision, which had passed."""
    person = Person(
        prompts=[by_person("prompt", Action.APPROVE)], revisions=[by_person("revision", Action.STOP)]
    )
    session = stage([reply_with("one")], {"one": examples.passed(1000)}, approver=person).run(rounds=1)
    assert "stopped the session at round 0" in session.stopped
    assert waiting_round(session) is session.rounds[0]
    assert session.best is None


def test_a_revision_at_which_a_person_stopped_waits_for_its_decision_again(stage, reply_with):
    stopped_at_revision(stage, reply_with)
    person = Person(revisions=[by_person("revision", Action.APPROVE)])
    again = stage([], {}, approver=person)
    session = again.run(rounds=1)
    assert person.asked == ["revision"]
    assert (again.model.prompts, again.effects.evaluator.tiers) == ([], [])
    assert [item.action for item in session.rounds[0].decisions] == [Action.APPROVE, Action.APPROVE]
    assert session.best is session.rounds[0]
    assert session == again.store.load("relu")
    [summary] = again.store.summaries()[0]
    assert summary.best == 0


def test_what_was_decided_before_the_interruption_is_told(stage, reply_with):
    approve = by_person("prompt", Action.APPROVE)
    steer = by_person("revision", Action.STEER, reason="256 threads")
    stop = by_person("revision", Action.STOP)
    stopped = Person(prompts=[approve], revisions=[steer, stop])
    first = stage([reply_with("one")], {"one": examples.passed(1000)}, approver=stopped)
    session = first.run(rounds=1)
    again = stage([], {}, approver=Person(revisions=[by_person("revision", Action.STEER, reason="twice")]))
    with pytest.raises(Killed):
        again.run(rounds=1)
    said = [made.reason for made in decided_before(again.store.load(session.name), again.store)]
    assert said == ["", "256 threads", "twice"]


def test_a_stop_at_a_revision_that_waits_again_stops_again(stage, reply_with):
    stopped_at_revision(stage, reply_with)
    again = stage([], {}, approver=Person(revisions=[by_person("revision", Action.STOP, reason="later")]))
    session = again.run(rounds=4)
    assert session.stopped == "person:ada stopped the session at round 0: later"
    assert waiting_round(again.store.load("relu")).number == 0


def test_an_edit_of_a_revision_that_waits_again_is_judged_and_counts(stage, reply_with):
    stopped_at_revision(stage, reply_with)
    edit = by_person("revision", Action.EDIT, edited=examples.kernel_source("mine"))
    again = stage(
        [],
        {"mine": examples.passed(500)},
        approver=Person(revisions=[edit, by_person("revision", Action.APPROVE)]),
    )
    [made] = again.run(rounds=1).rounds
    assert made.candidate.source == examples.kernel_source("mine")
    assert len(made.attempts) == 2
    assert made.approved
