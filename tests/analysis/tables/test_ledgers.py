"""Ledgers as tables."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.tables.ledgers import ledger_tables
from cutegen_nb.core.round import Action, Decision, Prediction
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.strategy import Direction
from cutegen_nb.report.html.session_page import render
from cutegen_nb.testing import examples

SESSION = examples.session_of(Relation.FIRST, Relation.LESS_WORK)
DOWN = Prediction(text="sectors down", counter="gmem_load_sectors", direction=Direction.DOWN)


def predicted():
    first, second = SESSION.rounds
    made = (
        Decision(gate="prompt", action=Action.APPROVE, by="person:ada", prediction=DOWN),
        Decision(gate="revision", action=Action.REJECT, by="person:ada", reason="use <b>warps</b>"),
    )
    compared = Comparison(relation=Relation.LESS_WORK, reason=".", against=first.candidate.digest)
    attempt = replace(second.attempts[0], evaluation=examples.passed(50))
    second = replace(second, decisions=made, comparison=compared, strategy=None, attempts=(attempt,))
    return replace(SESSION, rounds=(first, second))


def test_a_session_without_predictions_and_words_has_no_tables():
    plain = replace(SESSION, rounds=tuple(replace(item, strategy=None) for item in SESSION.rounds))
    assert ledger_tables(plain) == ()


def test_predictions_and_words_are_rows():
    claims, words = ledger_tables(predicted())
    row = next(row for row in claims.rows if row[1] == "ada")
    assert row == ("r1", "ada", "gmem_load_sectors down", "100 → 50 (−50.0 %) at the size that ran", "held")
    assert "ada: 1 of 1 held." in claims.note
    assert words.rows == (("r1", "rejected by ada", "use <b>warps</b>", "no further round"),)


def test_the_report_has_them_and_runs_nothing_of_them():
    page = render(predicted())
    assert "gmem_load_sectors down" in page
    assert "use &lt;b&gt;warps&lt;/b&gt;" in page
