from __future__ import annotations

import pytest

from cutegen_nb.analysis.history.ended import ended_words, is_stopped_by_person, stored_stop


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (stored_stop("person:root", "at round 1"), "root stopped it at round 1"),
        (stored_stop("person:ada", "after epoch 2", " enough. "), "ada stopped it after epoch 2: “enough”"),
        (
            stored_stop("person:ada", "in round 2", "enough: for\ntoday", "compiling"),
            "ada stopped it in round 2 while compiling: “enough: for\ntoday”",
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
