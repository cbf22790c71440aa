"""The recorded sessions that are shipped: each is read, replayed and shown on the page, wherever it was recorded."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path

import pytest

from cutegen_nb.app.gallery import read_gallery
from cutegen_nb.app.replay import before_decision, replayed
from cutegen_nb.cli.bundles import import_session
from cutegen_nb.cli.main import make_parser
from cutegen_nb.notebook.saved_record import record
from cutegen_nb.store.bundle import read_bundle
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.wiring import Settings

ROOT = Path(__file__).parents[1]
SESSIONS = ROOT / "notebooks" / "sessions"
BUNDLES = sorted(SESSIONS.glob("*.cutegen"))
LARGEST_BYTES = 1 << 20
"""Most bytes of a bundle in the repository: a session of ten rounds on a GPU has half of it."""


@pytest.fixture
def maker(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("make_gallery")


def test_the_page_is_what_its_maker_makes_and_shows_every_bundle(maker):
    page = maker.page()
    assert page == maker.PAGE.read_text(encoding="utf-8"), "run `python tools/make_gallery.py`"
    assert maker.shown_names(page) == [path.stem for path in BUNDLES]


@pytest.mark.every(test=5)
@pytest.mark.parametrize("path", BUNDLES, ids=lambda path: path.stem)
def test_a_bundle_is_imported_and_replayed_to_its_end(path, tmp_path):
    recorded = read_bundle(path)
    assert path.stat().st_size <= LARGEST_BYTES
    parser, _ = make_parser()
    options = parser.parse_args(["import", str(path), "--store", str(tmp_path / "imported")])
    assert asyncio.run(import_session(options, None)).text.startswith(f"{recorded.name}: ")
    with SqliteStore(tmp_path / "replayed") as store:
        copy = asyncio.run(replayed(recorded, store, lambda _: None, Settings(folder=tmp_path)))
    assert [item.number for item in copy.rounds] == [item.number for item in recorded.rounds]
    assert [item.approved for item in copy.rounds] == [item.approved for item in recorded.rounds]


@pytest.mark.first(1)
@pytest.mark.parametrize("path", BUNDLES, ids=lambda path: path.stem)
def test_times_that_were_measured_are_shown_at_the_gate(path):
    found = next(one for one in read_gallery(SESSIONS) if one.path == path)
    number = found.session.rounds[min(1, len(found.session.rounds) - 1)].number
    text = record(before_decision(found.session, number))["text/plain"]
    assert "not measured" not in text
    assert ("no measured times" in text) == found.summary.is_simulated
    if not found.summary.is_simulated and found.best:
        assert found.best.is_measured
