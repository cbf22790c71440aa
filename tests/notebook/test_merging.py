"""A merge that is thought about in the panel, and the answer that the panel and the magic both give."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.analysis.source.merge import mergeable
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.round import Action
from cutegen_nb.notebook.approver import Gate
from cutegen_nb.notebook.merging import merge_answer, merge_view
from cutegen_nb.notebook.view import Live, overview

_PATH = Path(__file__).parents[1] / "report" / "conftest.py"
_SPEC = importlib.util.spec_from_file_location("report_samples_of_merging", _PATH)
SAMPLES = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(SAMPLES)
WHOLE = SAMPLES.five_rounds()
OPEN = replace(WHOLE, rounds=WHOLE.rounds[:4], stopped="")
BEST = OPEN.rounds[2].candidate


def gate(source):
    """r4, made from r2 as r3 was, waits."""
    made = Candidate(source=source, author="openai:demo-model", parents=(BEST.digest,))
    attempt = replace(WHOLE.rounds[4].attempts[0], candidate=made)
    return Gate(kind="revision", session=OPEN, attempts=(attempt,))


APART = gate(BEST.source.replace("THREADS = 256", "THREADS = 128"))
AGAINST = gate(BEST.source.replace("four elements a thread.", "and more."))


def test_only_revisions_whose_changes_the_waiting_one_lacks_are_offered():
    assert mergeable(APART.with_pending(OPEN)) == (3,)
    assert mergeable(OPEN) == ()  # r3 was made from all that there is
    view = overview(OPEN, Live(gate=APART), None)
    assert view["gate"]["merges"] == [{"round": 3, "label": "r3 · grid-stride · rejected"}]


def test_a_look_shows_both_sides_hunks_and_what_merging_would_change():
    seen = merge_view(APART, ["r3", "r4"], "q")
    assert (seen["question"], seen["origin"], seen["able"]) == ("q", "r2", True)
    assert [side["revision"] for side in seen["sides"]] == ["r3", "r4"]
    assert all(hunk["number"] == 1 for side in seen["sides"] for hunk in side["hunks"])
    assert "Persistent CTAs" in seen["sides"][0]["hunks"][0]["body_html"]
    assert "THREADS" in seen["sides"][1]["hunks"][0]["body_html"]
    assert "Persistent CTAs" in seen["preview_html"]
    assert "judged before it counts" in seen["words"]


def test_what_the_panel_decides_is_what_the_magic_decides():
    answer = merge_answer(APART, ["r3:1", "r4"], "gelu")
    assert (answer.action, answer.gate, answer.number) == (Action.EDIT, "revision", 4)
    assert "THREADS = 128" in answer.edited
    assert "Persistent CTAs" in answer.edited
    assert answer.parents == (OPEN.rounds[3].candidate.digest, APART.attempts[0].candidate.digest)


def test_a_contradiction_is_shown_by_its_lines():
    seen = merge_view(AGAINST, ["r3", "r4"], "q")
    assert seen["able"] is False
    assert "leave out the change of one of them" in seen["words"]
    assert "r3 |" in seen["places"]
    assert "r4 |" in seen["places"]
    assert seen["sides"]


@pytest.mark.parametrize(
    ("revisions", "words"),
    [
        (["r3:", "r4"], "Choose at least one change of r3."),
        (["r3", "r4:"], "Choose at least one change of r4."),
        (["r3:9", "r4"], "There is no hunk 9"),
        (["r9", "r4"], "no revision 'r9'"),
        (["r1", "r4"], "has all of the other's changes already"),
        (["r3"], "a merge takes two revisions, and 1 were named"),
        (["r3:x;<b>", "r4"], "names no hunks"),
    ],
)
def test_what_cannot_be_merged_is_said_and_decides_nothing(revisions, words):
    seen = merge_view(APART, revisions, "q")
    assert seen["able"] is False
    assert words in seen["words"]
    assert seen["preview_html"] == ""


def test_a_merge_is_only_for_a_revision_that_waits():
    with pytest.raises(UsageError, match=r"cutegen-nb merge gelu r3 r4:1 -o FILE\.py"):
        merge_answer(None, ["r3", "r4:1"], "gelu")
    assert merge_view(None, ["r3", "r4"], "q")["able"] is False
