from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.history.session_summary import SessionSummary, summarise
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.timing import BaselineTiming, Timing
from cutegen_nb.testing import examples


def estimated(session, *seconds):
    rounds = tuple(
        replace(item, comparison=replace(item.comparison, estimated_s=value))
        for item, value in zip(session.rounds, seconds, strict=True)
    )
    return replace(session, rounds=rounds)


def timed(item, median_ms):
    eager = BaselineTiming(name="eager", median_ms=2.0, speedup=2.0, speedup_low=1.9, speedup_high=2.1)
    timing = Timing(
        median_ms=median_ms, samples_ms=(median_ms,), baselines=(eager,), bandwidth_bytes_per_s=1e12
    )
    last = item.attempts[-1]
    return replace(
        item,
        attempts=(*item.attempts[:-1], replace(last, evaluation=replace(last.evaluation, timing=timing))),
    )


@pytest.fixture
def session():
    return examples.session_of(Relation.FIRST, Relation.ESTIMATED_FASTER, Relation.ESTIMATED_SLOWER)


def test_the_gain_is_first_over_best_by_their_estimates(session):
    found = summarise(estimated(session, 6e-6, 2e-6, 9e-6))
    assert (found.first, found.best, found.gain) == (0, 1, pytest.approx(3.0))
    assert found.shown.number == 1
    assert [item.is_measured for item in found.revisions] == [False] * 3


def test_an_estimate_and_a_measured_time_make_no_gain(session):
    made = estimated(session, 6e-6, 2e-6, 9e-6)
    found = summarise(replace(made, rounds=(made.rounds[0], timed(made.rounds[1], 0.001), made.rounds[2])))
    assert found.gain is None
    assert found.shown.is_measured
    assert found.shown.speedups == {"eager": 2.0}


def test_a_session_without_a_best_shows_its_last_round(session):
    rejected = replace(session, rounds=tuple(replace(item, decisions=()) for item in session.rounds))
    found = summarise(rejected)
    assert (found.first, found.best, found.gain) == (None, None, None)
    assert found.shown.number == 2
    assert summarise(replace(session, rounds=())).shown is None


def test_a_summary_is_read_back_as_it_was_written(session):
    found = summarise(session)
    assert decode(SessionSummary, encode(found)) == found
    assert isinstance(session.rounds[0].comparison, Comparison)
