"""The ledgers as the panel shows them."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.core.round import Action, Decision
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.notebook.review.ledger_view import claims_view, ledger_view
from cutegen_nb.testing import examples

SESSION = examples.session_of(Relation.FIRST, Relation.LESS_WORK)


def said(*reasons):
    first, last = SESSION.rounds
    made = tuple(
        Decision(gate="revision", action=Action.REJECT, by="person:ada", reason=one) for one in reasons
    )
    return replace(
        SESSION, rounds=(replace(first, decisions=made, strategy=None), replace(last, strategy=None))
    )


def test_there_is_no_ledger_where_nobody_said_anything():
    assert ledger_view(None) == {}
    assert ledger_view(said()) == {}


def test_words_are_shown_with_the_round_that_they_led_to():
    shown = ledger_view(said("it strides over rows"))
    assert shown["title"] == "Ledger: 1 of 1 times your words led to something better"
    assert shown["words"] == [
        {
            "round": 0,
            "did": "rejected",
            "words": "it strides over rows",
            "led_to": 1,
            "became": "first kernel, PASSED, less work, approved by policy auto",
            "kind": "good",
        }
    ]


def test_words_without_a_round_that_followed_them_are_not_counted():
    first, last = said("it strides over rows").rounds
    waiting = replace(last, decisions=first.decisions)
    assert ledger_view(replace(SESSION, rounds=(first, waiting)))["title"].startswith("Ledger: 1 of 1 times")
    alone = ledger_view(replace(SESSION, rounds=(first,)))
    assert (alone["title"], alone["words"][0]["became"]) == ("Ledger", "the next round shows it")


def test_words_that_led_to_a_first_kernel_are_not_counted():
    first, last = SESSION.rounds
    words = Decision(gate="prompt", action=Action.STEER, by="person:ada", reason="use warps")
    steered = replace(first, decisions=(words, *first.decisions))
    shown = ledger_view(replace(SESSION, rounds=(steered, last)))
    assert "your words" not in shown["title"]
    assert shown["words"][0]["led_to"] == 0
    failed = replace(steered, comparison=None)
    assert "your words" not in ledger_view(replace(SESSION, rounds=(failed, last)))["title"]


def test_invisible_characters_of_words_are_written_out():
    assert "⟨U+202E⟩" in ledger_view(said("look \u202e here"))["words"][0]["words"]


def test_a_round_has_its_own_claims_beside_its_rationale():
    first, second = SESSION.rounds
    compared = Comparison(relation=Relation.LESS_WORK, reason=".", against=first.candidate.digest)
    attempt = replace(second.attempts[0], evaluation=examples.passed(50))
    item = replace(second, comparison=compared, attempts=(attempt,))
    shown = claims_view(replace(SESSION, rounds=(first, item)), item)
    assert [(one["said"], one["outcome"], one["kind"]) for one in shown] == [
        ("`gmem_load_sectors` down", "held", "good")
    ]
