"""Ledgers: how often a predictor was right and by how much, and what a person's words led to."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.history.ledger import calibrations, claims, deed, said, without_quote
from cutegen_nb.core.round import Action, Decision, Prediction
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.strategy import Direction
from cutegen_nb.testing import examples

ADA = "person:ada"
LESS = Relation.LESS_WORK


def prediction(fraction, counter="gmem_load_sectors"):
    return Prediction(
        text=f"{counter} down", counter=counter, direction=Direction.DOWN, change_fraction=fraction
    )


def decided(action, reason="", gate="revision", by=ADA, **more):
    return Decision(gate=gate, action=action, by=by, reason=reason, **more)


def session(*decisions, author=None, sectors=50):
    """Three rounds; the second halves the sectors of the first, with these decisions and a prediction."""
    first, second, third = examples.session_of(Relation.FIRST, LESS, LESS).rounds
    first = replace(first, attempts=(replace(first.attempts[0], evaluation=examples.passed(100)),))
    attempt = replace(second.attempts[0], evaluation=examples.passed(sectors), prediction=author)
    compared = Comparison(relation=LESS, reason=".", against=first.candidate.digest)
    second = replace(
        second,
        attempts=(attempt,),
        comparison=compared,
        strategy=None,
        decisions=decisions or second.decisions,
    )
    made = examples.session_of(Relation.FIRST, LESS, LESS)
    return replace(made, rounds=(first, second, replace(third, strategy=None)))


def test_predictions_of_author_and_person_are_counted_apart():
    own = decided(Action.APPROVE, gate="prompt", prediction=prediction(0.1))
    made = session(own, author=prediction(0.5))
    found = {one.by: one for one in calibrations(claims(made))}
    assert (found["author"].held, found["author"].size_off) == (1, 0)
    assert (found[ADA].held, found[ADA].size_off) == (0, 1)
    assert (
        found[ADA].text
        == "0 of 1 held, 1 right in direction only, changes came out 5.00× as large as predicted"
    )


def test_of_two_predictions_of_a_person_for_a_round_the_last_counts():
    first = decided(Action.APPROVE, gate="prompt", prediction=prediction(0.1))
    again = decided(Action.APPROVE, gate="prompt", prediction=prediction(0.5))
    found = {one.by: one for one in calibrations(claims(session(first, again)))}
    assert (found[ADA].held, found[ADA].size_off) == (1, 0)


def test_a_wrong_direction_is_missed_and_gives_no_size():
    found = calibrations(claims(session(author=prediction(0.5), sectors=200)))
    assert (found[0].missed, found[0].ratio) == (1, None)


def test_words_that_name_nothing_measured_stay_undecided():
    found = claims(session(author=Prediction(text="it will fly")))
    assert found[0].claim.score is None
    assert calibrations(found)[0].text == "none decided yet, 1 undecided"


def test_words_at_a_request_led_to_its_round_and_words_at_a_revision_to_the_next():
    made = session(
        decided(Action.STEER, "one warp a row", gate="prompt"),
        decided(Action.APPROVE, gate="prompt"),
        decided(Action.REJECT, "it strides over rows"),
    )
    steer, reject = said(made)
    assert (steer.number, steer.led_to, steer.decision.reason) == (1, 1, "one warp a row")
    assert (reject.number, reject.led_to) == (1, 2)
    assert reject.became == "first kernel, PASSED, less work, approved by policy auto"


def test_words_that_led_to_a_first_kernel_led_to_nothing_better():
    made = session(decided(Action.STEER, "one warp a row", gate="prompt"))
    (less,) = said(made)
    item = made.rounds[1]
    alone = replace(item, comparison=replace(item.comparison, relation=Relation.FIRST))
    (first,) = said(replace(made, rounds=(made.rounds[0], alone, *made.rounds[2:])))
    assert (less.is_better, first.is_better) == (True, False)


def test_words_in_the_last_round_wait_for_the_next_and_policies_say_nothing():
    made = session()
    last = replace(
        made.rounds[2],
        decisions=(decided(Action.REJECT, "no"), decided(Action.REJECT, "x", by="policy:auto")),
    )
    found = said(replace(made, rounds=(*made.rounds[:2], last)))
    assert [(one.led_to, one.became) for one in found] == [(None, "")]


def test_a_comment_on_lines_is_called_one():
    assert deed(decided(Action.STEER, "On lines 3–5 of r1:\n    x\nwhy?")) == "commented"
    assert deed(decided(Action.STEER, "Only use warps")) == "steered"


def test_a_comment_in_a_line_leaves_out_the_code_that_it_quotes():
    words = "On lines 3–4 of r1:\n    x = 1\n    y = 2\nWhy not:\n    x = y = 1"
    assert without_quote(words) == "On lines 3–4 of r1: Why not:     x = y = 1"
    assert without_quote("Only use warps\n    of 32") == "Only use warps\n    of 32"
