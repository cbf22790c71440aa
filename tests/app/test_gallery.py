"""Gallery of recorded sessions: what is read from a folder of bundles, and what is shown of each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.app.gallery import gallery_markdown, gallery_rows, gallery_text, read_gallery
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import StoreError, UsageError
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.session import Session
from cutegen_nb.core.timing import Timing
from cutegen_nb.store.bundle import write_bundle
from cutegen_nb.testing.examples import session_of


def measured_session() -> Session:
    """A session of two rounds as a GPU would record it: 2 ms, then 0.5 ms."""
    session = session_of(Relation.FIRST, Relation.FASTER, name="timed")
    rounds = []
    for item, median_ms in zip(session.rounds, (2.0, 0.5), strict=True):
        (attempt,) = item.attempts
        timing = Timing(
            median_ms=median_ms, samples_ms=(median_ms,), baselines=(), bandwidth_bytes_per_s=4e12
        )
        judged = replace(attempt.evaluation, timing=timing)
        rounds.append(replace(item, attempts=(replace(attempt, evaluation=judged),)))
    device = replace(session.device, kind=DeviceKind.GPU, name="NVIDIA H200", architecture="sm_90")
    return replace(session, device=device, rounds=tuple(rounds))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_bundle(measured_session(), tmp_path / "timed.cutegen", {})
    write_bundle(session_of(Relation.FIRST, name="counted"), tmp_path / "counted.cutegen", {})
    return tmp_path


def test_a_session_from_a_gpu_shows_measured_times_and_their_gain(folder):
    counted, timed = gallery_rows(read_gallery(folder))[1]
    assert timed[2:6] == ("NVIDIA H200", "2.00 ms, measured (r0)", "500 µs, measured (r1)", "4.00×")
    assert counted[2].startswith("simulator, estimates for NVIDIA A100")
    assert counted[3:6] == ("not timed (r0)", "not timed (r0)", "–")


def test_what_a_session_teaches_is_stated_or_taken_from_its_largest_step(folder):
    assert "Its largest step is " in read_gallery(folder)[1].teaches
    (folder / "lessons.toml").write_text('timed = "A step of four."')
    assert read_gallery(folder)[1].teaches == "A step of four."


def test_the_page_has_a_row_and_a_section_for_each_session(folder):
    page = gallery_markdown(read_gallery(folder))
    for name in ("counted", "timed"):
        assert f"\n| {name} | " in page
        assert f"## {name}\n" in page
    assert page.count("| r1 | ") == 1
    assert "timed: Its largest step" in gallery_text(read_gallery(folder))


def test_a_folder_that_is_no_gallery_gets_one_sentence(folder, tmp_path):
    with pytest.raises(UsageError, match=r"holds no \.cutegen file"):
        read_gallery(tmp_path / "nothing")
    for text, words in (
        ("gone = 'x'", "has a lesson for gone"),
        ("timed = 3", "timed is no text"),
        ("=", "is not TOML"),
    ):
        (folder / "lessons.toml").write_text(text)
        with pytest.raises(UsageError, match=words):
            read_gallery(folder)
    (folder / "lessons.toml").unlink()
    (folder / "broken.cutegen").write_text("nothing")
    with pytest.raises(StoreError, match="is no bundle or is damaged"):
        read_gallery(folder)
