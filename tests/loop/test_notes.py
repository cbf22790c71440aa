"""The note on a round without a kernel is for a person; what the author is told stays in the attempt."""

from __future__ import annotations

import pytest

from cutegen_nb.core.errors import Declined, Unreachable
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.round import Action, Decision, Reply, Usage
from cutegen_nb.loop.notes import round_note
from cutegen_nb.testing.examples import failed, passed

WORDS = "Which GPU do you have?"


def test_unusable_replies_are_told_without_the_request_to_the_author(stage):
    [made] = stage([WORDS] * 3, {}, menu=()).run(rounds=1).rounds
    assert made.note == f"the last of 3 replies held words and no code (“{WORDS}”)"
    assert made.attempts[-1].problem.endswith("Send the whole file in one block.")


def test_a_reply_that_was_cut_off_is_told_as_such(stage):
    cut = Reply(text="```python\nclass Mod", usage=Usage(), finish_reason="length")
    [made] = stage([WORDS, WORDS, cut], {}, menu=()).run(rounds=1).rounds
    assert made.note == "the last of 3 replies was cut off before its end"


@pytest.mark.parametrize("error", [Unreachable("nobody there"), Declined("no kernels for this problem")])
def test_an_author_that_fails_is_quoted_as_it_is(stage, error):
    [made] = stage([error], {}, menu=()).run(rounds=1).rounds
    assert made.note == str(error)


def test_an_author_that_answers_once_is_told_by_the_fault_of_its_answer(stage):
    [made] = stage([WORDS, Declined("I write the same file again")], {}, menu=()).run(rounds=1).rounds
    assert made.note == f"the reply held words and no code (“{WORDS}”)"


def test_a_repair_that_brought_no_kernel_is_told_beside_the_verdict(stage, reply_with):
    wrong = failed(Verdict.WRONG_VALUES, "Wrong.")
    answers = [reply_with("broken"), "It is the tail.", "I shall.", "I shall.", "I shall."]
    [made] = stage(answers, {"broken": wrong}, menu=()).run(rounds=1).rounds
    assert made.note == "no repair came: the last of 3 replies held words and no code (“I shall.”)"
    answers = [reply_with("broken"), Unreachable("nobody there")]
    made = stage(answers, {"broken": wrong}, menu=()).run(rounds=2).rounds[1]
    assert made.note == "no repair came: nobody there"


def test_a_kernel_that_was_repaired_needs_no_note(stage, reply_with):
    answers = [reply_with("broken"), "It is the tail.", reply_with("cured")]
    found = {"broken": failed(Verdict.WRONG_VALUES, "Wrong."), "cured": passed(1000)}
    [made] = stage(answers, found, menu=()).run(rounds=1).rounds
    assert made.note == ""


def test_a_stop_before_any_request_is_told():
    assert round_note((), [Decision(gate="prompt", action=Action.STOP, by="person:ada")]) == (
        "stopped at the prompt gate"
    )
    assert round_note(()) == ""
