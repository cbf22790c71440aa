from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.history.session_summary import RevisionSummary, summarise
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.report.html.sessions_table import course, lead, sessions_table
from cutegen_nb.testing import examples


def revision(
    number: int, seconds: float | None, *, better: bool = False, passed: bool = True, measured=False
):
    return RevisionSummary(
        number=number,
        strategy="coalesce",
        verdict="PASSED" if passed else "WRONG_RESULT",
        passed=passed,
        relation="faster" if better else "",
        is_better=better,
        decision="approved" if better else "",
        decided_by="person:ada",
        seconds=seconds,
        is_measured=measured,
        speedups={"eager": 2.5} if measured else {},
    )


def summary(*revisions: RevisionSummary, name: str = "relu", **changes):
    made = summarise(examples.session_of(Relation.FIRST, name=name))
    best = [item.number for item in revisions if item.is_better]
    first, last = (best[0], best[-1]) if best else (None, None)
    return replace(made, revisions=revisions, rounds=len(revisions), first=first, best=last, **changes)


IMPROVED = summary(
    revision(0, 8e-6, better=True), revision(1, None, passed=False), revision(2, 2e-6, better=True)
)


def test_a_row_shows_time_gain_and_its_revisions_with_decisions():
    page = sessions_table([IMPROVED])
    assert "2.00 µs<small>estimated</small>" in page
    assert "4.00×<span" in page
    assert "approved by ada" in page
    assert page.count('<tr class="cgs-best">') == 1
    assert "WRONG_RESULT" in page


def test_columns_that_no_session_fills_are_left_out():
    assert "× eager" not in sessions_table([IMPROVED])
    assert "Library" not in sessions_table([IMPROVED])
    measured = summary(revision(0, 1e-6, better=True, measured=True))
    assert "× eager" in sessions_table([measured, IMPROVED])
    assert "2.50×" in sessions_table([measured])


def test_a_measured_time_is_not_called_an_estimate():
    measured = summary(
        revision(0, 1e-6, better=True, measured=True), is_simulated=False, device="NVIDIA H200"
    )
    page = sessions_table([measured])
    assert "estimated" not in page
    assert "simulated" not in page
    assert "1 of them measured on a GPU" in lead([measured])


def test_the_newest_session_comes_first():
    old = summary(name="old", created_at="2026-01-01T00:00:00+00:00")
    new = summary(name="new", created_at="2026-02-01T00:00:00+00:00")
    page = sessions_table([old, new])
    assert page.index("<span>new</span>") < page.index("<span>old</span>")


def test_a_session_before_its_first_round_has_a_row():
    page = sessions_table([summary(name="empty")])
    assert "<span>empty</span>" in page
    assert "It may go on." in page


def test_the_course_steps_down_at_each_improvement_and_marks_failures():
    found = course(IMPROVED)
    assert found is not None
    assert found.line == "3.0,3.0 89.0,3.0 89.0,21.0 89.0,21.0"
    assert len(found.timed) == 2
    assert found.failed == (46.0,)
    assert "4.00× from first to best; 1 of 3 rounds did not pass" in found.words


def test_the_course_of_a_session_without_times_is_none():
    assert course(summary(revision(0, None))) is None


def test_the_course_of_a_single_time_lies_in_the_middle():
    found = course(summary(revision(0, 1e-6, better=True)))
    assert found is not None
    assert found.timed == ((3.0, 12.0),)


def test_a_long_course_draws_the_improvements_alone():
    many = summary(
        *(revision(number, 1e-6 * (200 - number), better=number % 50 == 0) for number in range(200))
    )
    found = course(many)
    assert found is not None
    assert len(found.timed) == 4


@pytest.mark.parametrize(
    "payload", ['"><img src=x>', "</style><script>1</script>", "\u202egnp.exe", "{{ 7*7 }}"]
)
def test_text_of_a_session_is_never_markup(payload):
    hostile = summary(
        replace(
            IMPROVED.revisions[0], strategy=payload, verdict=payload, decision=payload, decided_by=payload
        ),
        name=payload,
        problem=payload,
        author=payload,
        device=payload,
        stopped=payload,
        created_at=payload,
    )
    page = sessions_table([hostile], damaged={payload: payload})
    for raw in ("<img", "<script", "</style><", "\u202e", ">49<"):
        assert raw not in page
