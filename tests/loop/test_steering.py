"""A person's words come first: they name the strategy, stand before it in the request, and reach each repair."""

from __future__ import annotations

from typing import ClassVar

import pytest

from cutegen_nb.core.errors import AuthorError
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.round import Action, Decision
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.loop.stages import Step
from cutegen_nb.loop.steering import steered
from cutegen_nb.testing import examples
from cutegen_nb.testing.examples import failed, passed

MENU = tuple(Strategy(name=name, statement=f"Do {name}.") for name in ("coalesce", "vectorise-128", "unroll"))
DUE = Strategy(name="split-k", statement="It was due.")


class Steers(AutoApprover):
    """Policy that says given words at the gate of a prompt or of a revision of one round."""

    def __init__(self, gate: str, number: int, words: str) -> None:
        self._gate, self._number, self._words = gate, number, words

    def _said(self, session, gate: str) -> Decision | None:
        if (gate, len(session.rounds)) != (self._gate, self._number):
            return None
        self._gate = ""
        return Decision(gate=gate, action=Action.STEER, by="person:ada", reason=self._words)

    async def review_prompt(self, session, prompt) -> Decision:
        return self._said(session, "prompt") or await super().review_prompt(session, prompt)

    async def review_revision(self, session, attempts, comparison) -> Decision:
        said = self._said(session, "revision")
        return said or await super().review_revision(session, attempts, comparison)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("Unroll it four times.", "unroll"),
        ("please do vectorise-128 now", "vectorise-128"),
        ("vectorise 128 bits wide", "vectorise-128"),
        ("try VECTORISE_128", "vectorise-128"),
        ("coalesce, and after that unroll", "unroll"),
        ("not coalesce but unroll", "unroll"),
        ("avoid unroll; coalesce instead", "coalesce"),
        ("unroll rather than coalesce", "unroll"),
        ("never unroll. Never coalesce.", "split-k"),
        ("don't unroll", "split-k"),
        ("remove the unroll", "split-k"),
        ("the loads are uncoalesced", "split-k"),
        ("pre-unroll nothing", "split-k"),
        ("use two stages", "split-k"),
        ("", "split-k"),
    ],
)
def test_the_strategy_that_a_persons_words_name_last_takes_the_place_of_the_one_due(words, name):
    step = Step(
        stage=Stage.STRUCTURE,
        parent=examples.finished_round(0),
        strategy=DUE,
        chosen_because="split-k won on like problems",
    )
    found = steered(step, words, MENU)
    assert found.strategy.name == name
    # The records of like problems chose only the strategy that was due.
    assert bool(found.chosen_because) is (name == "split-k")


NUMBERS = Strategy(name="tune-unroll", statement="Choose.", stage=Stage.TUNE)


@pytest.mark.parametrize(
    ("due", "words", "found"),
    [
        (Stage.TUNE, "coalesce", Stage.STRUCTURE),
        (Stage.TUNE, "use tune-unroll", Stage.TUNE),
        (Stage.STRUCTURE, "use tune-unroll", Stage.TUNE),
        (Stage.PROFILE, "coalesce", Stage.PROFILE),
    ],
)
def test_a_strategy_of_another_stage_is_asked_for_by_that_stages_request(due, words, found):
    step = Step(stage=due, parent=examples.finished_round(0), strategy=DUE)
    assert steered(step, words, (*MENU, NUMBERS)).stage is found


def test_a_first_kernel_has_no_strategy_to_replace():
    step = Step(stage=Stage.CORRECT)
    assert steered(step, "unroll", MENU) == step


@pytest.mark.parametrize(("gate", "number"), [("revision", 0), ("prompt", 1)])
def test_words_at_a_gate_choose_the_strategy_and_stand_before_it_in_the_request(
    stage, reply_with, gate, number
):
    loop = stage(
        [reply_with("first"), reply_with("second"), reply_with("third")],
        {"first": passed(1000), "second": passed(500), "third": passed(400)},
        menu=MENU,
        approver=Steers(gate, number, "Unroll it.\nKeep one kernel."),
    )
    session = loop.run(rounds=3)
    assert [item.strategy and item.strategy.name for item in session.rounds] == [None, "unroll", "coalesce"]
    assert session.rounds[1].candidate.strategy == MENU[2]
    request = loop.model.prompts[1]
    assert request.steering == "Unroll it.\nKeep one kernel."
    words = request.user.index(
        "# What the person asks for, before all else\n\n> Unroll it.\n> Keep one kernel."
    )
    assert words < request.user.index("**unroll**")
    assert loop.model.prompts[2].steering == ""
    assert "the person had asked: Unroll it." in loop.model.prompts[2].user


def test_a_persons_words_reach_the_diagnosis_and_the_repair_of_their_round(stage, reply_with):
    broken = failed(Verdict.WRONG_VALUES, "Wrong.")
    loop = stage(
        [reply_with("first"), reply_with("broken"), "The tail.", reply_with("cured")],
        {"first": passed(1000), "broken": broken, "cured": passed(900)},
        approver=Steers("revision", 0, "Keep the sums in float32."),
    )
    loop.run(rounds=2)
    assert [prompt.purpose for prompt in loop.model.prompts[2:]] == ["diagnose", "repair"]
    for prompt in loop.model.prompts[1:]:
        assert prompt.steering == "Keep the sums in float32."
        assert "> Keep the sums in float32." in prompt.user


def test_words_that_come_one_after_the_other_are_all_told(stage, reply_with):
    class Twice(AutoApprover):
        said: ClassVar = ["Mind the tail.", "Use 256 threads."]

        async def review_prompt(self, session, prompt) -> Decision:
            if self.said:
                return Decision(gate="prompt", action=Action.STEER, by="person:ada", reason=self.said.pop(0))
            return await super().review_prompt(session, prompt)

    loop = stage([reply_with("first")], {"first": passed(1000)}, menu=(), approver=Twice())
    loop.run(rounds=1)
    assert loop.model.prompts[0].steering == "Mind the tail.\nUse 256 threads."


def test_a_strategy_whose_kernel_was_rejected_comes_again_by_its_name(stage, reply_with):
    loop = stage(
        [reply_with(mark) for mark in ("first", "worse", "again")],
        {"first": passed(1000), "worse": passed(5000), "again": passed(500)},
        approver=Steers("prompt", 2, "coalesce, with 256 threads"),
    )
    session = loop.run(rounds=3)
    assert [item.strategy and item.strategy.name for item in session.rounds] == [None, "coalesce", "coalesce"]
    assert session.best.number == 2


def test_a_person_may_stop_after_steering(stage):
    class Stops(AutoApprover):
        asked = 0

        async def review_prompt(self, session, prompt) -> Decision:
            self.asked += 1
            action = Action.STEER if self.asked == 1 else Action.STOP
            return Decision(gate="prompt", action=action, by="person:ada", reason="enough")

    loop = stage([], {}, approver=Stops())
    session = loop.run()
    assert loop.model.prompts == []
    assert session.stopped == "person:ada stopped the session at round 0: enough"
    assert session.rounds == (), "nothing was asked for"
    assert [item.result.reason for item in loop.store.intermediates("relu")] == ["enough"], "the words stay"


def test_what_a_person_asked_for_outlasts_an_author_that_fails(stage, reply_with):
    class Edits(AutoApprover):
        gates = 0

        async def review_prompt(self, session, prompt) -> Decision:
            self.gates += 1
            if self.gates == 2:
                return Decision(gate="prompt", action=Action.STEER, by="person:ada", reason="Mind the tail.")
            if self.gates == 3:
                return Decision(
                    gate="prompt",
                    action=Action.EDIT,
                    by="person:ada",
                    edited=f"{prompt.user}\nIn one kernel.",
                )
            return await super().review_prompt(session, prompt)

    lost = AuthorError("the server answered 401")
    answers = [reply_with("first"), lost, lost, reply_with("second"), reply_with("third")]
    found = {"first": passed(1000), "second": passed(500), "third": passed(400)}
    loop = stage(answers, found, menu=MENU, approver=Edits())
    for _ in range(3):
        session = loop.run(rounds=5)
    asked = [item.attempts[0].prompt for item in session.rounds]
    assert [item.candidate is None for item in session.rounds[:4]] == [False, True, True, False]
    assert [prompt.user.endswith("In one kernel.") for prompt in asked[:5]] == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert [prompt.steering for prompt in asked[1:5]] == ["Mind the tail."] * 3 + [""]
