"""Replay of a recorded session from the store or from a file: nobody is asked and nothing runs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.app.exporting import export
from cutegen_nb.app.replay import (
    before_decision,
    epoch_words,
    recorded_session,
    recording_line,
    replayed,
    round_words,
)
from cutegen_nb.core.errors import StoreError, UsageError
from cutegen_nb.core.timing import Timing
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples
from cutegen_nb.wiring import Settings

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path):
    with SqliteStore(tmp_path) as opened:
        yield opened


def test_a_session_comes_from_the_store_or_from_a_file(store, tmp_path):
    session = examples.evolved_session()
    store.create(session)
    export(session, str(tmp_path / "relu.cutegen"), None)

    assert recorded_session("relu", store) == session
    assert recorded_session(str(tmp_path / "relu.cutegen"), store).rounds == session.rounds
    with pytest.raises(StoreError, match="no session 'nobody'"):
        recorded_session("nobody", store)


def test_at_a_gate_the_round_is_judged_and_nothing_is_decided_on_it():
    recorded = examples.evolved_session()
    at_gate = before_decision(recorded, 1)

    assert [item.number for item in at_gate.rounds] == [0, 1]
    assert at_gate.rounds[0] == recorded.rounds[0]
    assert at_gate.rounds[1].evaluation == recorded.rounds[1].evaluation
    assert not [one for one in at_gate.rounds[1].decisions if one.gate == "revision"]
    assert recorded.rounds[1].approved
    assert not at_gate.rounds[1].approved
    assert not at_gate.stopped
    assert not at_gate.epochs
    with pytest.raises(UsageError, match="there is no r9"):
        before_decision(recorded, 9)


def test_what_is_told_of_a_recording_says_when_where_and_by_whom():
    line = recording_line(examples.evolved_session())

    assert line.startswith("relu, recorded from ")
    assert line.endswith("on simulator (sm_80), written by test: nothing runs now")


def test_a_round_and_an_epoch_are_a_line_each():
    session = examples.evolved_session()

    assert round_words(session.rounds[1]).startswith(
        "r1  extend: own the only one with tiles: PASSED, less work"
    )
    assert (
        round_words(session.rounds[3])
        == "r3  invent: no strategy stated: no candidate (the only one with tiles)"
    )
    assert epoch_words(session).startswith("Epoch 1: r2, r0 go on, the best at 1.11×.")
    assert "ada pinned r0" in epoch_words(session)


def test_a_round_that_was_timed_is_told_with_its_time():
    item = examples.finished_round(1)
    (attempt,) = item.attempts
    timing = Timing(median_ms=0.25, samples_ms=(0.25,), baselines=(), bandwidth_bytes_per_s=1e12)
    timed = replace(attempt, evaluation=replace(attempt.evaluation, timing=timing))

    assert ": PASSED, 250 µs measured, less work" in round_words(replace(item, attempts=(timed,)))


def test_each_replay_is_stored_under_a_free_name_with_the_same_verdicts(store):
    recorded = recorded_session(str(ROOT / "tests" / "sessions" / "swiglu.cutegen"), store)
    told: list[str] = []

    for _ in range(2):
        again = asyncio.run(
            replayed(
                recorded,
                store,
                told.append,
                Settings(),
                on_round=lambda _, item: told.append(round_words(item)),
            )
        )

    assert set(store.names()) == {"swiglu_replay", "swiglu_replay_2"}
    labels = [[item.evaluation and item.evaluation.label for item in one.rounds] for one in (recorded, again)]
    assert labels[0] == labels[1]
    assert any(line.startswith("r0  ") for line in told)
