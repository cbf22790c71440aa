from __future__ import annotations

import asyncio
from dataclasses import replace

from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.round import Action, Reply, Usage
from cutegen_nb.core.session import Budget
from cutegen_nb.loop.gates import ConsoleApprover
from cutegen_nb.loop.session import open_session, run_session
from cutegen_nb.testing import examples
from cutegen_nb.testing.examples import failed, passed


def console(answers, *, edits=()):
    lines, texts, said = iter(answers), iter(edits), []

    async def read_line(question: str) -> str | None:
        return next(lines, None)

    async def edit_text(text: str, suffix: str) -> str | None:
        return next(texts, None)

    return ConsoleApprover(person="ada", say=said.append, read_line=read_line, edit_text=edit_text), said


def test_a_person_approves_and_is_recorded(stage, reply_with):
    approver, said = console(["a", "a"])
    loop = stage([reply_with("first")], {"first": passed(1000)}, menu=(), approver=approver)

    session = loop.run()

    assert [(d.gate, d.action, d.by) for d in session.rounds[0].decisions] == [
        ("prompt", Action.APPROVE, "person:ada"),
        ("revision", Action.APPROVE, "person:ada"),
    ]
    assert session.best.number == 0
    assert any("PASSED" in text for text in said)


def test_words_of_a_rejection_reach_the_next_prompt(stage, reply_with):
    approver, _ = console(["a", "a", "a", "r too clever by half", "a", "a"])
    marks = ("first", "second", "third")
    loop = stage(
        [reply_with(mark) for mark in marks],
        {mark: passed(1000 - 100 * number) for number, mark in enumerate(marks)},
        approver=approver,
    )

    session = loop.run(rounds=3)

    assert not session.rounds[1].approved
    assert "> the person rejected it: too clever by half" in loop.model.prompts[2].user
    assert loop.model.prompts[2].parent.digest == session.rounds[0].candidate.digest


def test_steering_at_the_revision_gate_is_quoted_in_the_next_prompt(stage, reply_with):
    approver, _ = console(["a", "s use two stages", "a", "a", "a"])
    loop = stage(
        [reply_with("first"), reply_with("second")],
        {"first": passed(1000), "second": passed(500)},
        approver=approver,
    )

    session = loop.run(rounds=2)

    assert session.rounds[0].approved
    assert "# What the person asks for, before all else\n\n> use two stages" in loop.model.prompts[1].user


def test_steering_at_the_prompt_gate_changes_this_prompt(stage, reply_with):
    approver, _ = console(["s mind the tail", "a", "a"])
    loop = stage([reply_with("first")], {"first": passed(1000)}, menu=(), approver=approver)

    session = loop.run()

    assert "> mind the tail" in loop.model.prompts[0].user
    assert session.rounds[0].decisions[0].reason == "mind the tail"


def test_an_edited_prompt_is_what_the_author_sees(stage, reply_with):
    approver, _ = console(["e", "a"], edits=["only this"])
    loop = stage([reply_with("first")], {"first": passed(1000)}, menu=(), approver=approver)

    session = loop.run()

    assert loop.model.prompts[0].user == "only this"
    assert session.rounds[0].attempts[0].prompt.digest == loop.model.prompts[0].digest
    assert session.rounds[0].attempts[0].prompt.digest != ""


def test_an_edited_source_is_evaluated_before_it_counts(stage, reply_with):
    approver, _ = console(["a", "e", "a"], edits=[examples.kernel_source("mine")])
    loop = stage(
        [reply_with("first")],
        {"first": failed(Verdict.WRONG_VALUES, "Wrong."), "mine": passed(10)},
        menu=(),
        approver=approver,
    )

    session = loop.run(repairs=0)

    assert session.best.candidate.author == "person:ada"
    assert session.best.candidate.parents == (session.rounds[0].attempts[0].candidate.digest,)
    assert session.best.evaluation.passed


def test_what_did_not_pass_cannot_be_approved(stage, reply_with):
    approver, said = console(["a", "a", "r", "it is wrong"])
    loop = stage(
        [reply_with("first")], {"first": failed(Verdict.CRASHED, "Crashed.")}, menu=(), approver=approver
    )

    session = loop.run(rounds=1, repairs=0)

    assert not session.rounds[0].approved
    assert any("only a kernel that passed can be built upon" in text for text in said)


def test_a_person_goes_on_from_another_revision(stage, reply_with):
    approver, said = console(["a", "a", "a", "a", "a", "b r7", "b r0", "a", "r", "no"])
    marks = ("first", "second", "third", "fourth")
    loop = stage(
        [reply_with(mark) for mark in marks],
        {mark: passed(1000 - 100 * number) for number, mark in enumerate(marks)},
        approver=approver,
    )

    session = loop.run(rounds=4)

    assert loop.model.prompts[3].parent.digest == session.rounds[0].candidate.digest
    assert any("no passing revision 'r7'" in text for text in said)
    assert not session.rounds[2].approved


def test_the_end_of_the_input_stops_the_session_and_nothing_is_asked(stage):
    approver, _ = console([])
    loop = stage([], {}, approver=approver)

    session = loop.run()

    assert session.stopped == "person:ada stopped the session at round 0: end of input"
    assert loop.model.prompts == []
    assert session.rounds == ()


def test_a_session_that_was_stopped_goes_on_where_it_was(stage, reply_with):
    approver, _ = console(["a", "a", "q"])
    answers = [reply_with("first"), reply_with("second")]
    loop = stage(answers, {"first": passed(1000), "second": passed(500)}, approver=approver)
    assert "stopped the session at round 1" in loop.run().stopped

    approver, _ = console(["a", "a"])
    again = stage(answers[1:], {"first": passed(1000), "second": passed(500)}, approver=approver)
    session = again.run(rounds=2)

    assert session.best.number == 1
    assert session.stopped == "the budget of 2 rounds is spent"


def test_an_unknown_answer_is_met_with_help(stage, reply_with):
    approver, said = console(["what", "v", "a", "what", "a"])
    loop = stage([reply_with("first")], {"first": passed(1000)}, menu=(), approver=approver)
    loop.run()
    assert sum("q: stop" in text for text in said) == 2
    assert any("# The reference" in text for text in said)


def test_the_wall_and_token_budgets_say_which_fired(stage, reply_with):

    def play(budget: Budget, tokens: int) -> str:
        reply = Reply(text=reply_with("first"), usage=Usage(input_tokens=tokens, output_tokens=1))
        loop = stage([reply], {"first": passed(1000)})

        async def go() -> str:
            session = await open_session(
                examples.relu_problem(), loop.effects, loop.store, budget, fresh=True
            )
            return (await run_session(replace(session), loop.effects, loop.store)).stopped

        return asyncio.run(go())

    assert play(Budget(wall_s=0.5), 0).startswith("the budget of 0.5 s is spent")
    assert play(Budget(tokens=100), 100) == "the budget of 100 tokens is spent: 101 were used"


def test_a_person_sees_the_stage_and_what_a_repair_gave_up(stage, reply_with):

    flag = Finding(kind="simplified", message="The repair launches a single CTA.", severity=Severity.FLAG)
    approver, said = console(["a", "a"])
    found = replace(passed(1000), findings=(flag,))
    loop = stage([reply_with("first")], {"first": found}, menu=(), approver=approver)
    loop.run()
    assert any("Round 0 of relu (correct): first kernel" in text for text in said)
    assert any("flagged: The repair launches a single CTA." in text for text in said)
