"""Recorded sessions in a lesson: the table of a folder, and one of them as a value."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutegen_nb import recording, recordings
from cutegen_nb.notebook.faults import NotebookUsageError

SESSIONS = Path(__file__).parents[3] / "notebooks" / "sessions"


def test_a_folder_is_shown_as_a_table_with_what_each_session_teaches():
    shown = recordings(str(SESSIONS))
    html = shown.bundle["text/html"].replace("<wbr>", "")
    for path in SESSIONS.glob("*.cutegen"):
        assert path.stem in html
        assert f"{path.stem}: " in repr(shown)
    with pytest.raises(NotebookUsageError, match=r"holds no \.cutegen file"):
        recordings("nowhere")


def test_a_recording_has_rounds_and_runs_nothing():
    session = recording(str(SESSIONS / "l1_norm_simulated.cutegen"))
    assert session.rounds["decision"].tolist()[:3] == ["approved", "rejected", "approved"]
    assert "def forward" in session[3].source
    with pytest.raises(NotebookUsageError, match="is a recording and runs nothing"):
        session.best.module()
    with pytest.raises(NotebookUsageError, match="cannot read"):
        recording("nothing.cutegen")
