"""Handlers of the magics that need no kernel."""

from __future__ import annotations

import argparse
from dataclasses import replace
from types import SimpleNamespace

import pytest

from cutegen_nb.analysis.source.diff import LineKind
from cutegen_nb.analysis.source.diff import diff as line_diff
from cutegen_nb.core.compiled.listing import CodeListing, CodeRow, packed_rows
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.notebook.faults import NotebookUsageError
from cutegen_nb.notebook.review import commands
from cutegen_nb.testing import examples

# In files of 200 lines and more difflib aligns by rare lines only: of `pass` between two changes it makes a change.
OLD = "".join(f"def part_{i}():\n    pass\n\n\n" for i in range(80))
NEW = (
    OLD.replace("part_40()", "part_40(x)")
    .replace("part_41()", "part_41(x)")
    .replace("def part_60():\n    pass\n\n\n", "")
)


def desk(*sources: str) -> SimpleNamespace:
    session = examples.session_of(*[Relation.FIRST] * len(sources))
    rounds = [
        replace(item, attempts=(replace(made, candidate=replace(made.candidate, source=source)),))
        for item, source in zip(session.rounds, sources, strict=True)
        for made in item.attempts
    ]
    session = replace(session, rounds=tuple(rounds))
    return SimpleNamespace(stored_handle=lambda name, folder: SimpleNamespace(session=session))


def shown(*sources: str, revisions: tuple[str, ...] = ()) -> dict[str, str]:
    options = argparse.Namespace(name=None, revisions=list(revisions))
    return commands.diff(desk(*sources), options).bundle


def test_the_text_of_a_diff_is_aligned_as_its_html_and_the_panel_are():
    lines = shown(OLD, NEW)["text/plain"].splitlines()
    assert lines[:2] == ["--- r0", "+++ r1"]
    expected = [line for hunk in line_diff(OLD, NEW, context=1).hunks for line in hunk.lines]
    for sign, kind in (("+", LineKind.ADDED), ("-", LineKind.REMOVED)):
        assert [line[1:] for line in lines[2:] if line.startswith(sign)] == [
            line.text for line in expected if line.kind is kind
        ]
    assert lines[2] == "@@ -160,3 +160,3 @@"
    assert lines[3:7] == [" ", "-def part_40():", "+def part_40(x):", "     pass"]


@pytest.mark.parametrize(
    ("old", "new", "hunk"),
    [("", "a = 1\n", "@@ -0,0 +1,1 @@"), ("a = 1\n", "", "@@ -1,1 +0,0 @@")],
)
def test_the_place_of_an_empty_side_is_the_line_before_it(old: str, new: str, hunk: str):
    assert shown(old, new)["text/plain"].splitlines()[2] == hunk


def test_equal_sources_and_unknown_revisions_are_said_in_a_sentence():
    assert shown(OLD, OLD)["text/plain"] == "r1 is identical to r0."
    with pytest.raises(NotebookUsageError, match=r"a diff needs two revisions: relu has r0"):
        shown(OLD)
    with pytest.raises(NotebookUsageError, match=r"relu has no revision 'r7': there is r0, r1"):
        shown(OLD, NEW, revisions=("r0", "r7"))


def coded(*, number: int = 1, language: str = "PTX") -> SimpleNamespace:
    found = desk(OLD, NEW)
    session = found.stored_handle(None, None).session
    rows = packed_rows([CodeRow("{"), CodeRow("    ret; // \u202e", 7, 1024)])
    listing = CodeListing(kernel="kernel", language=language, packed=rows, note="Only the names.")
    (made,) = session.rounds[number].attempts
    made = replace(made, evaluation=replace(made.evaluation, code=(listing,)))
    rounds = [replace(item, attempts=(made,)) if item.number == number else item for item in session.rounds]
    session = replace(session, rounds=tuple(rounds))
    return SimpleNamespace(stored_handle=lambda name, folder: SimpleNamespace(session=session))


def listed(found: SimpleNamespace, revision: str | None = None, *, sass: bool = False) -> str:
    options = argparse.Namespace(name=None, revision=revision, sass=sass)
    return commands.ptx(found, options).bundle["text/plain"]


def test_the_compiled_code_of_a_revision_is_shown_as_text():
    assert listed(coded()).splitlines() == [
        "kernel, PTX: line of the source, executions by warps, code",
        "Only the names.",
        "                  {",
        "    7       1024      ret; // ⟨U+202E⟩",
    ]
    assert listed(coded(), "r1", sass=True) == "r1 has no SASS."
    assert "kernel, SASS:" in listed(coded(language="SASS"), "1", sass=True)


def test_a_revision_without_its_code_is_refused_in_a_sentence():
    with pytest.raises(NotebookUsageError, match=r"relu has no revision 'r0': there is r1"):
        listed(coded(), "r0")
    with pytest.raises(
        NotebookUsageError, match=r"no revision of relu has its compiled code: an older version"
    ):
        listed(desk(OLD, NEW))
