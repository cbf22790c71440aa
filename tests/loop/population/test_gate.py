"""Decisions at the gate of an epoch: pin, drop, write, forbid, budget and stop, and what each changes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count

import pytest

from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.round import Action, Decision
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.search.population import MoveKind
from cutegen_nb.core.session import Budget
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.gates import ConsoleApprover
from cutegen_nb.loop.population.gate import (
    MemberApprover,
    agree_on_epoch,
    check_decision,
    draft_epoch,
    settings_changed,
    with_changed_budget,
)
from cutegen_nb.testing import examples
from cutegen_nb.testing.clock import FixedClock

GAINS = {"a": 1.5, "b": 1.3, "c": 0.8, "d": 1.2, "e": 1.1, "f": 1.05, "g": 0.95}
PIN, DROP, REQUEST, FORBID, BUDGET = (
    Action.PIN, Action.DROP, Action.REQUEST, Action.FORBID, Action.BUDGET,
)  # fmt: skip


def numbers(session, digests) -> list[int]:
    return [session.round_of(digest).number for digest in digests]


def decided(action: Action, edited: str) -> Decision:
    return Decision(gate="epoch", action=action, by="person:ada", edited=edited)


@pytest.fixture
def played(evolve, landscape, at_epochs):
    stores = count()

    def play(decisions, epochs=2, population=2):
        approver = at_epochs(decisions)
        evolution = evolve(landscape(GAINS), approver=approver)
        apart = replace(evolution, folder=evolution.folder / str(next(stores)))
        return approver, apart.run(population, epochs)

    return play


def test_without_a_decision_the_fastest_go_on(played):
    approver, session = played({})
    assert numbers(session, session.epochs[0].members) == [1, 2]
    assert [decision.action for decision in session.epochs[0].decisions] == [Action.APPROVE]
    assert [draft.number for draft in approver.drafts] == [1, 2]


def test_a_pinned_kernel_stays_whatever_selection_says_until_it_is_dropped(played):
    approver, session = played({1: [(PIN, "r0")], 3: [(DROP, "r0")]}, epochs=3)
    # The draft shows the pin at once, and the decisions made so far.
    first, second = approver.drafts[:2]
    assert numbers(session, first.members) == [1, 2]
    assert numbers(session, second.members) == [1, 0]
    assert [decision.edited for decision in second.decisions] == ["r0"]
    assert [0 in numbers(session, epoch.members) for epoch in session.epochs] == [True, True, False]
    assert [decision.action for decision in session.epochs[0].decisions] == [PIN, Action.APPROVE]


def test_pinned_kernels_may_be_more_than_the_population_holds(played):
    _, session = played({1: [(PIN, "r0"), (PIN, "r2")]}, epochs=1)
    assert numbers(session, session.epochs[0].members) == [1, 2, 0]


def test_a_dropped_kernel_is_no_member_and_no_parent_again(played):
    _, session = played({1: [(DROP, "r1")]}, epochs=3)
    dropped = session.rounds[1].candidate.digest
    assert numbers(session, session.epochs[0].members) == [2, 0]
    assert all(dropped not in epoch.members for epoch in session.epochs)
    assert all(dropped not in item.slot.parents for item in session.rounds[3:])


def test_dropping_the_best_names_the_fastest_of_the_others(played):
    _, session = played({1: [(DROP, "r1")]}, epochs=1)
    assert session.epochs[0].best == session.rounds[2].candidate.digest
    assert session.best.number == 2


def test_a_strategy_that_a_person_writes_is_tried_first_in_the_next_epoch_on_the_fastest(played):
    _, session = played({1: [(REQUEST, " narrow-rows : Let a warp own a row. ")]})
    item = session.rounds[3]
    assert (item.slot.epoch, item.slot.number, item.slot.move) == (2, 1, MoveKind.REQUEST)
    assert (item.strategy.name, item.strategy.statement) == ("narrow-rows", "Let a warp own a row.")
    assert item.strategy.source == "person"
    assert item.slot.parents == (session.epochs[0].members[0],)
    assert "**narrow-rows**: Let a warp own a row." in item.attempts[0].prompt.user
    assert [one.slot.move for one in session.rounds[4:]] != [MoveKind.REQUEST]


def test_several_strategies_of_a_person_all_have_a_slot_even_beyond_the_population(played):
    wanted = [(REQUEST, f"mine-{number}: Do number {number}.") for number in range(3)]
    _, session = played({1: wanted})
    assert [
        (item.title, item.slot.move) for item in session.rounds if item.slot and item.slot.epoch == 2
    ] == [(f"mine-{number}", MoveKind.REQUEST) for number in range(3)]


def test_a_forbidden_strategy_is_tried_no_more_and_named_in_requests_for_new_ones(played):
    _, session = played({1: [(FORBID, "d"), (FORBID, "e")]}, epochs=4)
    _, free = played({}, epochs=4)
    assert not {"d", "e"} & {item.title for item in session.rounds}
    assert {"d", "e"} & {item.title for item in free.rounds}
    stated = [
        attempt.prompt.user
        for item in session.rounds
        for attempt in item.attempts
        if attempt.purpose in {"cross", "invent"}
    ]
    assert stated
    assert all("forbids" in text and "d, e" in text for text in stated)


def test_a_changed_budget_holds_from_the_next_epoch_on_and_for_a_resumed_session(
    evolve, landscape, at_epochs
):
    approver = at_epochs({1: [(BUDGET, "population=4"), (BUDGET, "epochs=2")]})
    evolution = evolve(landscape(GAINS), approver=approver)
    session = evolution.run(2, 9)
    assert [len(draft.members) for draft in approver.drafts[:3]] == [2, 3, 3]
    assert len([item for item in session.rounds if item.slot and item.slot.epoch == 2]) == 4
    assert session.stopped == "the budget of 2 epochs is spent"
    assert (session.plan.population, session.budget.epochs) == (4, 2)
    assert evolution.run(2, 9).rounds == session.rounds


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["epochs=4"], {"epochs": 4}),
        (["epochs=4", "population=2", "epochs=7"], {"epochs": 7, "population": 2}),
        (["epochs=0", "epochs=-1", "epochs=x", "epochs", "rounds=9", ""], {}),
    ],
)
def test_the_newest_change_of_each_setting_counts(texts, found):
    assert settings_changed([decided(BUDGET, text) for text in texts]) == found


def test_fewer_epochs_than_are_finished_end_the_session_where_it_is():
    session = examples.evolved_session()
    epoch = replace(session.epochs[0], decisions=(decided(BUDGET, "epochs=1"),))
    twice = replace(session, epochs=(epoch, replace(epoch, number=2, decisions=())))
    assert with_changed_budget(twice).budget.epochs == 2
    endless = replace(twice, budget=Budget(epochs=None))
    assert with_changed_budget(endless).budget.epochs is None


@pytest.mark.parametrize(
    ("action", "edited", "sentence"),
    [
        (PIN, "r9", "pin needs an approved revision, not 'r9': r0, r1, r2"),
        (DROP, "the slow one", "drop needs an approved revision, not 'the slow one': r0, r1, r2"),
        (DROP, "", "drop needs an approved revision, not '': r0, r1, r2"),
        (REQUEST, "narrow-rows", "a strategy is written as NAME: what to do, in one to three sentences"),
        (REQUEST, ": do it", "a strategy is written as NAME: what to do, in one to three sentences"),
        (REQUEST, "name: ", "a strategy is written as NAME: what to do, in one to three sentences"),
        (FORBID, " ", "forbid needs the name of a strategy"),
        (BUDGET, "epochs=0", "a budget is given as epochs=N or population=N, not 'epochs=0'"),
        (BUDGET, "rounds=3", "a budget is given as epochs=N or population=N, not 'rounds=3'"),
    ],
)
def test_a_decision_that_names_nothing_known_is_refused_in_a_sentence(action, edited, sentence):
    session = examples.evolved_session()
    with pytest.raises(UsageError) as refused:
        check_decision(session, session.epochs[0], decided(action, edited))
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("action", "edited"),
    [
        (PIN, "r1"), (PIN, " 2 "), (DROP, "r1"), (REQUEST, "a: b"), (FORBID, "x"),
        (BUDGET, " epochs=3 "), (BUDGET, "population=4"), (Action.APPROVE, ""), (Action.STOP, ""),
    ],
)  # fmt: skip
def test_a_decision_that_can_be_carried_out_is_accepted(action, edited):
    session = examples.evolved_session()
    check_decision(session, session.epochs[0], decided(action, edited))


def test_the_only_member_cannot_be_dropped():
    session = examples.evolved_session()
    alone = replace(session.epochs[0], members=(session.rounds[1].candidate.digest,))
    with pytest.raises(UsageError, match="r1 is the only member: pin another one before, or stop"):
        check_decision(session, alone, decided(DROP, "r1"))
    check_decision(session, alone, decided(DROP, "r2"))


def test_a_decision_that_no_check_saw_and_that_names_nothing_changes_nothing_and_stays_in_the_record(played):
    _, session = played({1: [(PIN, "r77"), (DROP, "none"), (BUDGET, "epochs=x"), (REQUEST, "no words")]})
    _, plain = played({})
    assert session.epochs[0].members == plain.epochs[0].members
    assert [decision.edited for decision in session.epochs[0].decisions[:-1]] == [
        "r77", "none", "epochs=x", "no words",
    ]  # fmt: skip


def console(answers):
    lines, said = iter(answers), []

    async def read_line(question):
        said.append(question)
        return next(lines, None)

    async def edit_text(text, suffix):
        return None

    return ConsoleApprover(person="ada", say=said.append, read_line=read_line, edit_text=edit_text), said


def test_a_person_at_a_terminal_decides_until_the_members_are_approved():
    session = examples.evolved_session()
    running = replace(session, epochs=())
    approver, said = console(
        [
            "what",
            "p r9",
            "p r0",
            "write own rows",
            "w own: One row a warp.",
            "f split-k",
            "b epochs=6",
            "d",
            "d r1",
            "a",
        ]
    )
    epoch = asyncio.run(agree_on_epoch(running, approver, FixedClock(), ()))
    assert [(item.action, item.edited, item.by) for item in epoch.decisions] == [
        (PIN, "r0", "person:ada"),
        (REQUEST, "own: One row a warp.", "person:ada"),
        (FORBID, "split-k", "person:ada"),
        (BUDGET, "epochs=6", "person:ada"),
        (DROP, "r1", "person:ada"),
        (Action.APPROVE, "", "person:ada"),
    ]
    assert numbers(running, epoch.members) == [2, 0]
    text = "\n".join(said)
    assert "a: go on with these members; p rN: keep rN whatever selection says" in text
    assert "pin needs an approved revision, not 'r9': r0, r1, r2" in text
    assert "a strategy is written as NAME: what to do" in text
    assert "drop needs an approved revision, not ''" in text
    # The table is shown anew after each decision, with the marks of the draft.
    tables = [words for words in said if words.startswith("\nEpoch 1 of relu")]
    assert len(tables) == len(epoch.decisions)
    assert "!" not in tables[0].partition("pinned\n")[2]
    assert "!" in tables[1].partition("pinned\n")[2]


@pytest.mark.parametrize(("answers", "reason"), [(["q tired of it"], "tired of it"), ([], "end of input")])
def test_a_person_may_stop_at_the_gate_of_an_epoch(answers, reason):
    session = replace(examples.evolved_session(), epochs=())
    approver, _ = console(answers)
    epoch = asyncio.run(agree_on_epoch(session, approver, FixedClock(), ()))
    assert [(item.action, item.reason) for item in epoch.decisions] == [(Action.STOP, reason)]


def test_the_gate_of_an_epoch_takes_of_a_persons_time(evolve, landscape):
    approver, _ = console(["a", "a", "a", "p r1", "a", "a"])
    evolution = evolve(landscape(GAINS), approver=approver)
    evolution.effects: Effects = replace(evolution.effects, clock=FixedClock(step_s=1.0))
    session = evolution.run(2, budget=Budget(rounds=100, epochs=9, person_s=5.0))
    # Two gates of the first kernel, two decisions on the first epoch, one on the second, a second each.
    assert [decision.seconds for epoch in session.epochs for decision in epoch.decisions] == [1.0] * 3
    assert session.stopped == ("the budget of 5 s of a person's time is spent: the gates waited for 5 s")


FLAG = Finding(kind="patched", message="It changes torch.", severity=Severity.FLAG)


@pytest.mark.parametrize(
    ("evaluation", "action", "reason"),
    [
        (examples.passed(10), Action.APPROVE, "more work: It grew."),
        (examples.failed(Verdict.WRONG_VALUES, "Wrong."), Action.REJECT, "Wrong."),
        (
            replace(examples.passed(10), provisional=("no sanitizer",)),
            Action.REJECT,
            "provisional: no sanitizer",
        ),
        (
            replace(examples.passed(10), findings=(FLAG, FLAG)),
            Action.REJECT,
            "Only a person approves what is flagged so: patched: It changes torch.",
        ),
    ],
)
def test_inside_an_epoch_every_kernel_that_stands_may_become_a_member(evaluation, action, reason):
    item = examples.finished_round(0)
    attempts = (replace(item.attempts[0], evaluation=evaluation),)
    grew = Comparison(relation=Relation.MORE_WORK, reason="It grew.")
    found = asyncio.run(MemberApprover().review_revision(examples.session_of(), attempts, grew))
    assert (found.action, found.reason, found.by) == (action, reason, "policy:population")


def test_a_draft_without_any_passing_kernel_has_no_member():
    session = replace(examples.evolved_session(), rounds=(), epochs=())
    draft = draft_epoch(session, ())
    assert (draft.members, draft.best, draft.champion) == ((), "", "")
