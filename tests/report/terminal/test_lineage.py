"""The lineage of a session as a tree in the terminal."""

from dataclasses import replace

from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.report.terminal.lineage import lineage_text
from cutegen_nb.testing.examples import failed, session_of


def test_the_best_the_approved_and_the_failed_have_their_signs():
    session = session_of(Relation.FIRST, Relation.FASTER, Relation.SLOWER)
    last = session.rounds[2]
    broken = replace(last.attempts[0], evaluation=failed(Verdict.RACE, "Two threads write."))
    session = replace(session, rounds=(*session.rounds[:2], replace(last, attempts=(broken,), decisions=())))
    shown = lineage_text(session)
    assert "● r0" in shown
    assert "★ r1" in shown
    assert "× r2" in shown


def test_rounds_without_a_candidate_are_named():
    session = session_of(Relation.FIRST, Relation.FASTER)
    silent = replace(session.rounds[1], attempts=(), note="no reply")
    assert "No candidate came of r1." in lineage_text(replace(session, rounds=(session.rounds[0], silent)))


def test_the_reason_of_the_end_is_told_whole():
    session = replace(session_of(Relation.FIRST), stopped="no answer: check that the server runs")
    assert lineage_text(session).splitlines()[-1] == "Ended: no answer: check that the server runs"
