"""The detail of a round: every version of its kernel, and what differs from the one before it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.source.diff import diff
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import NotJudged, NotJudgedReason, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.round import Attempt, Prompt
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.notebook.approver import Gate, restoring
from cutegen_nb.notebook.view import Live, detail
from cutegen_nb.notebook.view_gate import gate_view
from cutegen_nb.testing import examples

PROMPT = Prompt(system="s", user="u", digest="d" * 64, strategy=examples.strategies()[0])
SESSION = examples.session_of(Relation.FIRST)


def attempt(purpose, source, evaluation, author="offline", parent=None):
    candidate = Candidate(
        source=source, author=author, parents=(parent.digest,) if parent else (), rationale="Because."
    )
    return Attempt(purpose=purpose, prompt=PROMPT, reply=None, candidate=candidate, evaluation=evaluation)


WRITTEN = attempt("optimise", examples.kernel_source("written"), examples.passed(50))
EDITED = attempt(
    "edit",
    examples.kernel_source("edited"),
    examples.failed(Verdict.WRONG_VALUES, "3 of 4 elements differ"),
    author="person:ada",
)
GATE = Gate(kind="revision", session=SESSION, attempts=(WRITTEN, EDITED))


def shown(attempts, version=None):
    live = Live(gate=replace(GATE, attempts=attempts))
    return detail(SESSION, live, None, version)


def test_an_edit_that_failed_leaves_the_version_that_passed_in_the_list():
    view = shown((WRITTEN, EDITED))
    assert [(item["label"], item["verdict"], item["shown"]) for item in view["versions"]] == [
        ("kernel by offline", "PASSED", False),
        ("edit by ada", "WRONG_VALUES", True),
    ]
    assert view["new"] == EDITED.candidate.source
    assert view["editable"] is True
    assert view["is_old"] is False


def test_an_earlier_version_is_shown_with_its_own_verdict_and_is_not_edited():
    view = shown((WRITTEN, EDITED), version=0)
    assert view["new"] == WRITTEN.candidate.source
    assert view["verdict"] == "PASSED"
    assert view["is_old"] is True
    assert view["editable"] is False
    assert [item["shown"] for item in view["versions"]] == [True, False]
    assert view["key"] != shown((WRITTEN, EDITED))["key"], "a draft of the last version is not put into it"


def test_the_lines_at_which_an_edit_failed_come_with_their_messages():
    source = "import torch\nx = 1\ndef broken(:\n"
    findings = (
        Finding(kind="syntax-error", message="It does not parse.\nAt all.", line=3, column=12),
        Finding(kind="flagged", message="Only a flag.", line=2, severity=Severity.FLAG),
        Finding(kind="elsewhere", message="In a library.", file="/lib/site-packages/torch/a.py", line=2),
        Finding(kind="beyond", message="Of no line.", line=40),
        Finding(kind="wrong-values", message="Nowhere."),
    )
    broken = attempt("edit", source, replace(EDITED.evaluation, findings=findings), author="person:ada")
    view = shown((WRITTEN, broken))
    assert view["failed_lines"] == [{"line": 3, "message": "It does not parse."}]
    assert shown((WRITTEN, broken), version=0)["failed_lines"] == []


def test_one_version_needs_no_list_and_a_restored_one_keeps_its_number_and_name():
    assert shown((WRITTEN,))["versions"] == []
    first = replace(WRITTEN, purpose="generate")
    restored = replace(first, purpose="restore")
    view = shown((first, EDITED, restored))
    listed = [(item["attempt"], item["label"], item["shown"], item["current"]) for item in view["versions"]]
    assert listed == [
        (0, "first kernel by offline", True, True),
        (1, "edit by ada", False, False),
    ]
    assert view["new"] == WRITTEN.candidate.source
    assert (view["is_old"], view["editable"], view["verdict"]) == (False, True, "PASSED")
    assert shown((first, EDITED, restored), version=0) == view, "it is the version that waits"


def test_beside_a_restored_version_the_later_one_is_an_old_one():
    view = shown((WRITTEN, EDITED, replace(WRITTEN, purpose="restore")), version=1)
    assert (view["new"], view["is_old"]) == (EDITED.candidate.source, True)
    assert [item["verdict"] for item in view["versions"]] == ["PASSED", "WRONG_VALUES"]


def test_a_version_that_was_judged_later_is_listed_with_its_verdict():
    lost = NotJudged(reason=NotJudgedReason.TIMES_DISAGREE)
    unjudged = replace(WRITTEN, evaluation=replace(WRITTEN.evaluation, outcome=lost))
    view = shown((unjudged, WRITTEN, EDITED))
    assert [item["verdict"] for item in view["versions"]] == ["PASSED", "WRONG_VALUES"]
    assert shown((unjudged, WRITTEN, EDITED), version=0)["verdict"] == "PASSED"


def test_restoring_answers_the_gate_with_the_source_of_the_version():
    answer = restoring(GATE, 0)
    assert (answer.edited, answer.gate, answer.number) == (WRITTEN.candidate.source, "revision", 1)


@pytest.mark.parametrize("attempt_index", [-1, 2, "0", None])
def test_restoring_what_is_not_of_the_round_is_refused(attempt_index):
    with pytest.raises(UsageError, match="that version is not of the revision that waits now"):
        restoring(GATE, attempt_index)


def test_a_failed_repair_is_told_with_the_verdict_at_the_gate_and_afterwards():
    failed = replace(WRITTEN, evaluation=examples.failed(Verdict.WRONG_VALUES, "3 of 4 elements differ"))
    asked = Attempt(purpose="repair", prompt=PROMPT, reply=None, problem="no answer came within 600 s")
    words = "3 of 4 elements differ. No repair came: no answer came within 600 s."
    assert shown((failed, asked))["reason"] == words
    gate = replace(GATE, attempts=(failed, asked))
    whole = gate.with_pending(SESSION)
    assert gate_view(SESSION, whole, gate)["text"] == f"WRONG_VALUES: {words}"
    finished = replace(whole.rounds[-1], seconds=1.0)
    view = detail(replace(SESSION, rounds=(*SESSION.rounds, finished)), Live(), None)
    assert view["reason"] == words
    assert "No repair" not in view["spent"]
    assert shown((WRITTEN,))["reason"] == WRITTEN.evaluation.summary


OLD = "".join(f"    x{i} = {i}\n\n    # step\n" for i in range(60))
CHANGED = (
    (OLD, OLD.replace("x30 = 30", "x30 = 31")),
    (OLD, OLD.replace("    x40 = 40\n", "    y = 1\n    z = 2\n")),
    (OLD, "# new\n" + OLD + "# end\n"),
    (OLD.replace("x5 ", "𝑥5 "), OLD.replace("x5 ", "𝑥5 ").replace("x9 = 9", "x9 = 𝟗𝟗")),
    (OLD.replace("\n", "\r\n"), OLD.replace("x30 = 30", "x30 = 31").replace("\n", "\r\n")),
)


@pytest.mark.parametrize(("old", "new"), CHANGED)
def test_panel_and_diff_mark_the_same_lines(old: str, new: str):
    """`%cutegen diff` shows the lines of `diff`."""
    base = examples.finished_round(0)
    parent = replace(base.attempts[0].candidate, source=old)
    session = replace(
        SESSION, rounds=(replace(base, attempts=(replace(base.attempts[0], candidate=parent),)),)
    )
    made = attempt("optimise", new, examples.passed(10), parent=parent)
    gate = Gate(kind="revision", session=session, attempts=(replace(made, prompt=_from(parent)),))
    view = detail(session, Live(gate=gate), None)
    text = view["new"].replace("\r\n", "\n")
    units = text.encode("utf-16-le")
    marked = set()
    for _, _, start, stop in view["changes"]:
        before = units[: 2 * start].decode("utf-16-le").count("\n")
        part = units[2 * start : 2 * stop].decode("utf-16-le")
        marked |= set(range(before + 1, before + 1 + part.rstrip("\n").count("\n") + bool(part)))
    lines = [line for hunk in diff(old, new).hunks for line in hunk.lines]
    added = {line.new_number for line in lines if line.kind.value == "added"}
    assert marked == added
    assert marked


def _from(parent):
    return replace(PROMPT, parent=parent)


def test_a_request_has_the_last_one_beside_it():
    asked = replace(PROMPT, user="Write it faster.")
    live = Live(gate=Gate(kind="prompt", session=SESSION, prompt=asked))
    view = detail(SESSION, live, None)
    assert (view["user"], view["before"], view["before_name"]) == ("Write it faster.", "u", "r0")
    empty = replace(SESSION, rounds=())
    first = detail(empty, Live(gate=Gate(kind="prompt", session=empty, prompt=asked)), None)
    assert first["before"] == ""


def test_a_request_starts_from_the_best_where_a_later_round_has_the_same_kernel():
    first, second = examples.session_of(Relation.FIRST, Relation.CANNOT_TELL).rounds
    same = replace(second, attempts=first.attempts)
    session = replace(SESSION, rounds=(first, same))
    prompt = replace(PROMPT, parent=first.candidate)
    view = detail(session, Live(gate=Gate(kind="prompt", session=session, prompt=prompt)), None, None)
    assert (view["title"], view["from"]) == ("Request for r2", "r0")
