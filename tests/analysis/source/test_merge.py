"""Hunks of two proposals as one candidate, from the texts to the next round's parent."""

from __future__ import annotations

import asyncio
import difflib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutegen_nb.analysis.history.lineage_graph import lineage
from cutegen_nb.analysis.source.merge import changes_apart, merge_revisions, merge_texts, mergeable
from cutegen_nb.cli.main import main
from cutegen_nb.core.candidate import Candidate, source_digest
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.round import Action
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.lineage import parent_digest
from cutegen_nb.loop.session import open_session, run_session
from cutegen_nb.notebook.approver import Answer, Gate, PanelApprover
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples
from cutegen_nb.testing.clock import FixedClock
from cutegen_nb.testing.scripted import RecordedEvaluator, ScriptedModel

TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n", "\n"]), max_size=9).map("".join)
BASE = "class ModelNew:\n" + "".join(f"    line_{number} = {number}\n" for number in range(1, 21))


def with_line(source: str, number: int, text: str) -> str:
    return source.replace(f"line_{number} = {number}\n", f"line_{number} = {text}\n")


LEFT = with_line(with_line(BASE, 2, "'left'"), 18, "'left'")
RIGHT = with_line(BASE, 10, "'right'")


@given(TEXTS, TEXTS)
def test_a_side_that_changed_nothing_adds_nothing(ancestor, side):
    assert merge_texts(ancestor, side, ancestor) == (side, ())
    assert merge_texts(ancestor, ancestor, side) == (side, ())
    assert merge_texts(ancestor, side, side) == (side, ())


@given(TEXTS, TEXTS, TEXTS)
def test_the_order_of_the_sides_does_not_matter(ancestor, left, right):
    one, conflicts = merge_texts(ancestor, left, right)
    other, mirrored = merge_texts(ancestor, right, left)

    assert one == other
    assert [(item.place, item.left, item.right) for item in conflicts] == [
        (item.place, item.right, item.left) for item in mirrored
    ]


@given(TEXTS, TEXTS, TEXTS)
def test_a_merge_without_contradictions_invents_no_line_and_loses_no_added_one(ancestor, left, right):
    merged, conflicts = merge_texts(ancestor, left, right)
    if conflicts:
        return
    added = [
        line[2:]
        for side in (left, right)
        for line in difflib.ndiff(ancestor.splitlines(keepends=True), side.splitlines(keepends=True))
        if line.startswith("+ ")
    ]
    assert set(merged.splitlines(keepends=True)) <= set((ancestor + left + right).splitlines(keepends=True))
    assert set(added) <= set(merged.splitlines(keepends=True))


def test_changes_of_neighbouring_lines_are_both_made():
    merged, conflicts = merge_texts("a\nb\nc\n", "A\nb\nc\n", "a\nB\nc\n")

    assert (merged, conflicts) == ("A\nB\nc\n", ())


def branched(*sources: str) -> Session:
    """r0 is BASE; every other round was made from it."""
    rounds = []
    root = Candidate(source=BASE, author="test").digest
    for number, source in enumerate((BASE, *sources)):
        item = examples.finished_round(number)
        candidate = Candidate(source=source, author="test", parents=(root,) if number else ())
        rounds.append(replace(item, attempts=(replace(item.attempts[0], candidate=candidate),)))
    return replace(examples.session_of(), rounds=tuple(rounds))


def test_two_revisions_merge_into_one_that_names_both_as_parents():
    session = branched(LEFT, RIGHT)
    merged = merge_revisions(session, "r1", "r2")

    assert merged.source == with_line(LEFT, 10, "'right'")
    assert merged.parents == (source_digest(LEFT), source_digest(RIGHT))
    assert merged.words == "merged r1 and r2, both made from r0"


def test_single_hunks_are_taken_by_their_numbers():
    merged = merge_revisions(branched(LEFT, RIGHT), "r1:2", "2")

    assert merged.source == with_line(with_line(BASE, 18, "'left'"), 10, "'right'")


def test_a_contradiction_is_told_with_the_lines_and_a_hunk_less_resolves_it():
    session = branched(LEFT, with_line(RIGHT, 2, "'other'"))
    with pytest.raises(UsageError) as refused:
        merge_revisions(session, "r1", "r2")

    assert "line 3 of r0" in str(refused.value)
    assert "r1 |     line_2 = 'left'" in str(refused.value)
    assert "r2 |     line_2 = 'other'" in str(refused.value)
    assert "line_10" in merge_revisions(session, "r1:2", "r2").source


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("r1", "r9", "no revision 'r9': there is r0, r1, r2"),
        ("r0", "r2", "r2 has all of the other's changes already"),
        ("r1:5", "r2", "no hunk 5"),
        ("r1:x", "r2", "names no hunks"),
    ],
)
def test_what_cannot_be_merged_is_refused_in_a_sentence(first, second, said):
    with pytest.raises(UsageError, match=said):
        merge_revisions(branched(LEFT, RIGHT), first, second)


def test_rounds_whose_changes_the_last_one_lacks_could_be_merged_into_it():
    assert mergeable(branched(LEFT, RIGHT)) == (1,)
    assert mergeable(branched(LEFT, LEFT, RIGHT)) == (1,)
    assert mergeable(branched(RIGHT, LEFT, RIGHT)) == (2,)
    assert mergeable(branched(LEFT)) == ()
    assert mergeable(branched()) == ()
    assert mergeable(examples.session_of()) == ()


def test_a_merge_is_previewed_with_the_changes_of_each_side_even_where_they_contradict():
    session = branched(LEFT, with_line(RIGHT, 2, "'other'"))
    apart = changes_apart(session, "r1", "r2")
    assert (apart.origin, apart.labels) == ("r0", ("r1", "r2"))
    assert apart.ancestor.source == BASE
    assert [len(side.hunks) for side in apart.changes] == [2, 2]
    assert apart.sources == (LEFT, with_line(RIGHT, 2, "'other'"))
    with pytest.raises(UsageError, match="no revision 'r9'"):
        changes_apart(session, "r1", "r9")


def test_the_command_writes_a_file(tmp_path, capsys):
    with SqliteStore(tmp_path) as store:
        store.create(branched(LEFT, RIGHT))
    target = tmp_path / "both.py"
    status = main(["merge", "relu", "r1", "r2", "-o", str(target), "--store", str(tmp_path), "--json"])

    assert status == 0
    assert target.read_text(encoding="utf-8") == with_line(LEFT, 10, "'right'")
    assert json.loads(capsys.readouterr().out)["ancestor"] == "r0"
    assert main(["merge", "relu", "r1", "r1", "-o", str(target), "--store", str(tmp_path)]) == 2


def test_a_merge_at_the_gate_is_judged_recorded_with_both_parents_and_built_upon(tmp_path):
    both = with_line(LEFT, 10, "'right'")
    after = with_line(both, 5, "'after'")
    figures = {BASE: 100, LEFT: 120, RIGHT: 110, both: 80, after: 70}
    menu = tuple(Strategy(name=name, statement="Do it.") for name in ("one", "two", "three"))
    answers = [f"```python\n{source}```" for source in (BASE, LEFT, RIGHT, after)]
    merged = []

    def on_gate(gate: Gate | None) -> None:
        if gate is not None:
            asyncio.get_running_loop().call_soon(lambda: approver.take(answer(gate)))

    def answer(gate: Gate) -> Answer:
        if gate.kind == "revision" and gate.number == 2 and not merged:
            merged.append(merge_revisions(gate.with_pending(gate.session), "r1", "r2"))
            return Answer(
                action=Action.EDIT,
                edited=merged[0].source,
                reason=merged[0].words,
                parents=merged[0].parents,
            )
        if gate.kind == "revision" and gate.number == 1:
            return Answer(action=Action.REJECT, reason="both are wanted")
        return Answer(action=Action.APPROVE)

    approver = PanelApprover(person="ada", on_gate=on_gate)
    evaluations = {source_digest(source): examples.passed(figure) for source, figure in figures.items()}
    effects = Effects(
        author=ScriptedModel(answers, menu=menu),
        evaluator=RecordedEvaluator(examples.relu_facts(), examples.simulated_device(), evaluations),
        approver=approver,
        clock=FixedClock(),
        library=shipped_library(),
        progress=lambda text: None,
    )

    async def play() -> Session:
        with SqliteStore(tmp_path) as store:
            opened = await open_session(examples.relu_problem(), effects, store, Budget(rounds=4))
            await run_session(opened, effects, store)
            return store.load(opened.name)

    session = asyncio.run(play())
    made = session.rounds[2].candidate

    assert (made.source, made.author) == (both, "person:ada")
    assert made.parents == (source_digest(LEFT), source_digest(RIGHT))
    assert session.rounds[2].evaluation.passed
    assert parent_digest(session.rounds[3]) == made.digest
    found = {one.label: one.parents for one in lineage(session).revisions}
    assert found == {"r0": (), "r1": ("r0",), "r2.1": ("r0",), "r2": ("r1", "r2.1"), "r3": ("r2",)}
