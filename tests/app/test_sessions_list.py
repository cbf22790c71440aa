"""The list of sessions as text and as the output of a cell."""

from dataclasses import replace

import pytest

from cutegen_nb.analysis.history.session_summary import summarise
from cutegen_nb.app import sessions_list
from cutegen_nb.app.sessions_list import sessions_bundle, sessions_text, write_sessions
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.testing.examples import evolved_session, session_of


def summaries(*names):
    return [summarise(session_of(Relation.FIRST, name=name)) for name in names]


def test_a_simulator_is_named_as_such_and_not_by_the_gpu_whose_roofs_it_has():
    shown = sessions_text(summaries("relu"), {})
    assert "simulator (sm_80)" in shown
    assert "A100" not in shown


def test_the_time_is_written_as_in_the_page():
    (one,) = summaries("relu")
    shown = sessions_text([replace(one, created_at="2026-11-28T16:44:02+00:00")], {})
    assert "2026-11-28 16:44:02 UTC" in shown


def test_columns_for_policies_and_epochs_are_there_where_a_session_has_them():
    chain = sessions_text(summaries("relu"), {})
    assert "relu" in chain
    assert "epochs" not in chain
    assert "epochs" in sessions_text([*summaries("relu"), summarise(evolved_session("gelu"))], {})


def test_a_long_reason_of_an_end_is_shortened(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    reason = (
        "http://127.0.0.1:8765/v1 refused the key (HTTP 401: Incorrect API key provided): check the variable"
    )
    (failed,) = summaries("relu")
    shown = sessions_text([replace(failed, stopped=reason)], {})
    assert "http://127.0.0.1:8765/v1 refused the key (HTTP 401: …" in shown
    assert "check the variable" not in shown


def test_a_damaged_session_is_told_below_and_an_empty_store_in_words():
    assert sessions_text([], {"gelu": "gelu cannot be read"}) == "gelu cannot be read"
    assert sessions_text([], {}) == "no sessions yet"


def test_a_cell_holds_the_newest_alone_and_says_so(monkeypatch):
    monkeypatch.setattr(sessions_list, "MOST_IN_NOTEBOOK", 1)
    old, new = summaries("old", "new")
    shown = sessions_bundle([replace(new, created_at="2027-01-01"), old], {})["text/plain"]
    html = sessions_bundle([replace(new, created_at="2027-01-01"), old], {})["text/html"]
    assert "old" in shown
    assert "The newest 1 are shown." in html


@pytest.mark.parametrize(
    ("path", "session", "words"), [("a.txt", None, "does not end"), ("a.html", "relu", "leave relu out")]
)
def test_a_page_that_cannot_be_meant_is_refused(path, session, words):
    with pytest.raises(UsageError, match=words):
        write_sessions(None, path, session)
