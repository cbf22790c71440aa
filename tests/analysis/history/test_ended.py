from __future__ import annotations

import pytest

from cutegen_nb.analysis.history.ended import (
    EndKind,
    end_kind,
    ended_words,
    is_stopped_by_person,
    stored_stop,
)


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (stored_stop("person:root", "at round 1"), "root stopped it at round 1"),
        (stored_stop("person:ada", "after epoch 2", " enough. "), "ada stopped it after epoch 2: “enough”"),
        (
            stored_stop("person:ada", "in round 2", "enough: for\ntoday", "compiling"),
            "ada stopped it in round 2 while compiling: “enough: for\ntoday”",
        ),
        (
            stored_stop("person:ada", "in round 3", "later", "openai:m writes"),
            "ada stopped it in round 3 while openai:m writes: “later”",
        ),
        ("person:ada stopped it in round 0 while compiling", "ada stopped it in round 0 while compiling"),
    ],
)
def test_a_stop_is_stored_and_told_in_words(stored, words):
    assert is_stopped_by_person(stored)
    assert ended_words(stored) == words


@pytest.mark.parametrize(
    "reason", ["", "the budget of 2 rounds is spent", "a person: ada stopped the session"]
)
def test_another_reason_stays_as_it_is(reason):
    assert not is_stopped_by_person(reason)
    assert ended_words(reason) == reason


@pytest.mark.parametrize(
    ("reason", "kind", "is_final"),
    [
        ("", EndKind.OPEN, False),
        (stored_stop("person:ada", "at round 1"), EndKind.PERSON, False),
        ("the budget of 2 rounds is spent", EndKind.BUDGET, False),
        ("the budget of $1.00 is spent: the requests cost $1.2000", EndKind.BUDGET, False),
        ("every strategy was tried on r3", EndKind.EXHAUSTED, True),
        ("nothing is left to try: every strategy and pair was tried", EndKind.EXHAUSTED, True),
        ("3 epochs in a row brought no gain, after a restart", EndKind.EXHAUSTED, True),
        ("the best revision runs at 0.97 of the roof", EndKind.ROOF, True),
        ("the paper's schedule ends after 6 optimisation rounds", EndKind.SCHEDULE, True),
        ("the author wrote the same kernel again and it does not pass (round 2)", EndKind.FAILED, False),
    ],
)
def test_each_reason_of_the_loop_has_a_kind(reason, kind, is_final):
    assert end_kind(reason) is kind
    assert kind.is_final is is_final
