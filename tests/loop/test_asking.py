"""What `cutegen-nb prompt --session` prints is what the next round sends, to the letter."""

from __future__ import annotations

from argparse import Namespace

import pytest

from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.evaluator.problem.trace import _made
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.testing.examples import failed, passed

MENU = shipped_library().menu(WorkloadClass.ELEMENTWISE)
FOUND = {
    "first": passed(4000),
    "same": passed(4000),
    "same again": passed(4000),
    "counted": passed(1000),
    "last": passed(900),
}


def printed(loop, **options):
    asked = Namespace(**{"stage": None, "strategy": None, **options})
    return _made(loop.store.load("relu"), loop.effects.words, asked)


@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
def test_the_printed_request_is_the_one_that_is_sent_next_in_every_stage(stage, reply_with, rounds):
    loop = stage([reply_with(mark) for mark in FOUND], FOUND, menu=MENU)
    loop.run(rounds=rounds)
    prompt, word, because = printed(loop)
    session = loop.run(rounds=rounds + 1)
    assert prompt == loop.model.prompts[rounds]
    assert (word, because) == (session.rounds[-1].stage.value, session.rounds[-1].stage_because)


def test_the_printed_repair_holds_the_recorded_diagnosis_and_is_the_one_that_was_sent(stage, reply_with):
    broken = failed(Verdict.OUT_OF_BOUNDS, "Wrote past the end.", line=2)
    loop = stage(
        [reply_with("broken"), "Line 2 forgets the tail.", reply_with("cured")],
        {"broken": broken, "cured": passed(1000)},
        menu=MENU,
    )
    loop.run(rounds=1)
    prompt, word, _ = printed(loop, stage="repair")
    assert word == "repair"
    assert "> Line 2 forgets the tail." in prompt.user
    assert prompt.parent == loop.model.prompts[2].parent
    assert prompt.user == loop.model.prompts[2].user
    assert printed(loop, stage="diagnose")[0].user == loop.model.prompts[1].user
