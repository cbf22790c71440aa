"""Check of answers: `%%cutegen check`, `check` for one source, `check_notebook` for a file handed in."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

from cutegen_nb.analysis.problem.problem_text import problem_from_string
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.notebook.engine import EventLoopThread
from cutegen_nb.notebook.faults import NotebookUsageError
from cutegen_nb.notebook.handle import DisplayResult
from cutegen_nb.report.html.mark import render
from cutegen_nb.report.markup import visible
from cutegen_nb.teaching.answer import completed, fault_of
from cutegen_nb.teaching.exercise import Exercise, exercises, find_exercise
from cutegen_nb.teaching.marking import AnswerMark, marked, refused
from cutegen_nb.wiring import Settings

_SIMULATED = Settings(device="simulator")
"""Settings of a check: the simulator on every machine, because targets are simulated counts."""
_HEAD = re.compile(r"%%cutegen check[ \t]+(\S+)[^\n]*\n?")
"""First line of a cell that holds an answer."""


def check(name: str, source: str) -> AnswerMark:
    """Check an answer to an exercise on inputs drawn afresh, on the simulator.

    Args:
        name: exercise, such as ``"coalescing/1"``.
        source: the answer: a kernel, and a ``launch`` that starts it.

    Returns the mark: points by part, with a sentence for what is missing. A fault of the answer is a mark
    without points, never an exception. Raises UsageError for an unknown exercise.
    """
    exercise = find_exercise(name)
    with _own_engine() as engine:
        return _checked(exercise, source, engine)


def check_notebook(path: str) -> dict[str, AnswerMark]:
    """Check every answer of a notebook file on inputs drawn afresh; nothing of its outputs is read.

    The answers are the cells that begin with ``%%cutegen check NAME``; of several to one exercise the last
    counts. Exercises without an answer are left out. Raises UsageError for a file that is no notebook.
    """
    try:
        cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotebookUsageError(
            f"{path} cannot be read as a notebook ({error}): give an .ipynb file"
        ) from None
    answers = {}
    for source in sources:
        head = _HEAD.match(source)
        if head and head[1] in exercises():
            answers[head[1]] = f"# {head[0].strip()}\n{source[head.end() :]}"
    with _own_engine() as engine:
        return {
            name: _checked(exercise, answers[name], engine)
            for name, exercise in exercises().items()
            if name in answers
        }


def check_cell(engine: EventLoopThread, rest: str, cell: str) -> AnswerMark:
    """Check the cell below ``%%cutegen check NAME``; its line numbers are those of the editor.

    Raises UsageError for a missing or unknown name, and for an empty cell.
    """
    words = rest.split()
    if len(words) != 1:
        raise NotebookUsageError(f"check needs the name of an exercise: there is {', '.join(exercises())}")
    exercise = find_exercise(words[0])
    if not cell.strip():
        raise NotebookUsageError(
            f"the cell is empty: write a kernel and {exercise.signature} below the first line"
        )
    return _checked(exercise, f"# %%cutegen check {exercise.name}\n{cell}", engine)


def shown_mark(mark: AnswerMark) -> DisplayResult:
    """Return the mark as a cell shows it."""
    return DisplayResult({"text/html": render(mark), "text/plain": visible(repr(mark))})


def _checked(exercise: Exercise, source: str, engine: EventLoopThread) -> AnswerMark:
    fault = fault_of(exercise, source)
    if fault:
        return refused(exercise, fault)
    problem = problem_from_string(exercise.problem, name=exercise.name.replace("/", "_"))
    candidate = Candidate(source=completed(exercise, source), author="person")
    evaluation = engine.evaluator(_SIMULATED).evaluate(problem, candidate, lambda _: None)
    try:
        return marked(exercise, source, engine.result(evaluation))
    except KeyboardInterrupt:
        raise NotebookUsageError("interrupted: nothing was checked") from None


@contextlib.contextmanager
def _own_engine() -> Iterator[EventLoopThread]:
    """Make an engine whose processes end with the block."""
    engine = EventLoopThread()
    try:
        yield engine
    finally:
        engine.close()
