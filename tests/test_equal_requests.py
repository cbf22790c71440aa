"""Chain and population are compared after the same number of requests, and the docs state what comes out."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.core.round import Reply, Usage
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.store.bundle import read_bundle
from cutegen_nb.testing import examples

ROOT = Path(__file__).parents[1]


@pytest.fixture
def equal(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("equal_requests")


def test_the_table_of_the_docs_is_that_of_the_recorded_sessions(equal):
    paths = sorted((ROOT / "notebooks/sessions").glob("*_by_model_*.cutegen"))
    rows = equal.recorded_rows([read_bundle(path) for path in paths])
    page = (ROOT / "docs/explanation/model-sessions.md").read_text()
    assert len(rows) == 6
    for row in rows:
        assert f"| {' | '.join(row)} |" in page, "run `python benchmarks/equal_requests.py`"


def test_a_round_counts_once_all_of_its_requests_were_answered(equal):
    session = examples.session_of(Relation.FIRST, Relation.LESS_WORK)
    first, second = session.rounds
    asked = replace(second.attempts[0], reply=Reply(text="", usage=Usage()))
    first = replace(first, attempts=(replace(first.attempts[0], reply=asked.reply),))
    first = replace(first, comparison=replace(first.comparison, estimated_s=2e-6))
    second = replace(second, attempts=(asked, asked), comparison=replace(second.comparison, estimated_s=1e-6))
    session = replace(session, rounds=(first, second))
    found = [equal.best_after(session, number) for number in range(5)]
    assert [item.number if item else None for item in found] == [None, 0, 0, 1, 1]
