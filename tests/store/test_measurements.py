"""Measurements of other machines, kept beside the rounds, which count from when they were taken in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.batch import Measurement
from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.session import Session
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples


def _measured(session: Session, number: int, relation: Relation | None) -> Measurement:
    candidate = session.rounds[number].candidate
    assert candidate is not None
    evaluation = examples.passed(10)
    if relation is None:
        evaluation = replace(evaluation, outcome=Judged(verdict=Verdict.WRONG_VALUES))
    return Measurement(
        job=f"job {number}",
        candidate_digest=candidate.digest,
        evaluation=evaluation,
        device=examples.simulated_device(),
        comparison=Comparison(relation=relation, reason=".") if relation else None,
        measured_at="2026-01-01T00:00:00+00:00",
        absorbed_at="2026-01-02T00:00:00+00:00",
    )


LESS, SLOWER, FIRST, FASTER = Relation.LESS_WORK, Relation.SLOWER, Relation.FIRST, Relation.FASTER


def test_counts_decide_until_something_was_measured_and_later_rounds_decide_again():
    session = examples.session_of(FIRST, LESS, LESS)
    assert session.best is session.rounds[2]
    measured = (
        _measured(session, 0, FIRST),
        _measured(session, 1, FASTER),
        _measured(session, 2, SLOWER),
    )
    told = replace(session, measurements=measured)
    assert told.best is session.rounds[1]
    assert told.measured(session.rounds[2]) is measured[2]
    further = replace(told, rounds=(*session.rounds, examples.finished_round(3, LESS)))
    assert further.best is further.rounds[3]


def test_a_first_result_does_not_outdo_what_is_still_on_its_way():
    session = examples.session_of(FIRST, LESS)
    told = replace(session, measurements=(_measured(session, 0, FIRST),))
    assert told.best is session.rounds[1]


def test_an_approved_revision_that_fails_elsewhere_is_none_to_build_on():
    session = examples.session_of(FIRST, LESS)
    told = replace(session, measurements=(_measured(session, 1, None),))
    assert told.best is session.rounds[0]


def test_a_measurement_is_kept_once(tmp_path):
    session = examples.session_of(FIRST, LESS)
    found = _measured(session, 1, FIRST)
    with SqliteStore(tmp_path) as store:
        store.create(session)
        store.absorb("relu", [found])
        assert store.load("relu").measurements == (found,)
        with pytest.raises(StoreError, match="holds this"):
            store.absorb("relu", [_measured(session, 0, FIRST), found])
        assert store.load("relu").measurements == (found,)
