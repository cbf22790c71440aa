"""Check of answers: `%%cutegen check`, `check` for one source, `check_notebook` for a file handed in."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.notebook.engine import EventLoopThread
from cutegen_nb.notebook.faults import NotebookUsageError
from cutegen_nb.notebook.handle import DisplayResult
from cutegen_nb.notebook.teaching.assignments import keep_mark, known_exercises, named_exercise
from cutegen_nb.prompting.diagnostics import reduced_log
from cutegen_nb.report.html.mark import render
from cutegen_nb.report.markup import visible
from cutegen_nb.teaching.answer_check import CheckedAnswer, check_answer
from cutegen_nb.teaching.exercise import Exercise
from cutegen_nb.teaching.marking import AnswerMark
from cutegen_nb.teaching.submission import answers_in, read_cells
from cutegen_nb.wiring import Settings

SIMULATED = Settings(device="simulator")
"""Settings of a check: the simulator on every machine, because targets are simulated counts."""
_RAN = tuple(Judged(verdict=verdict) for verdict in (Verdict.PASSED, Verdict.WRONG_VALUES))
"""Outcomes of an answer whose calls came to their end."""
_STILL_RUNNING = (
    "Still running. If a loop of the kernel never ends, the check ends it after a minute; "
    "to stop it now, interrupt the cell (■)."
)


def check(name: str, source: str) -> AnswerMark:
    """Check an answer to an exercise on inputs drawn afresh, on the simulator.

    Args:
        name: exercise, such as ``"coalescing/1"``.
        source: the answer: a kernel, and a ``launch`` that starts it.

    Returns the mark: points by part, with a sentence for what is missing. A fault of the answer is a mark
    without points, never an exception. Raises UsageError for an unknown exercise.
    """
    exercise = named_exercise(name)
    with _own_engine() as engine:
        return _checked(exercise, source, engine).mark


def check_notebook(path: str) -> dict[str, AnswerMark]:
    """Check every answer of a notebook file on inputs drawn afresh; nothing of its outputs is read.

    The answers are the cells that begin with ``%%cutegen check NAME``; of several to one exercise the last
    counts. Exercises without an answer are left out. Raises UsageError for a file that is no notebook.
    """
    known = known_exercises()
    try:
        answers = answers_in(read_cells(Path(path)), known)
    except UsageError as error:
        raise NotebookUsageError(str(error)) from None
    with _own_engine() as engine:
        return {
            name: _checked(exercise, answers[name].source, engine).mark
            for name, exercise in known.items()
            if name in answers
        }


def check_cell(engine: EventLoopThread, rest: str, cell: str) -> AnswerMark:
    """Check the cell below ``%%cutegen check NAME``; its line numbers are those of the editor.

    Raises UsageError for a missing or unknown name, and for an empty cell.
    """
    words = rest.split()
    if len(words) != 1:
        raise NotebookUsageError(
            f"check needs the name of an exercise: there is {', '.join(known_exercises())}"
        )
    exercise = named_exercise(words[0])
    if not cell.strip():
        raise NotebookUsageError(
            f"the cell is empty: write a kernel and {exercise.signature} below the first line"
        )
    checked = _checked(exercise, f"# %%cutegen check {exercise.name}\n{cell}", engine, _say_still_running)
    _show_output(checked.evaluation)
    keep_mark(checked.mark)
    return checked.mark


def shown_mark(mark: AnswerMark) -> DisplayResult:
    """Return the mark as a cell shows it."""
    return DisplayResult({"text/html": render(mark), "text/plain": visible(repr(mark))})


def _say_still_running() -> None:
    print(_STILL_RUNNING, flush=True)  # noqa: T201 - the output of the cell


def _show_output(evaluation: Evaluation | None) -> None:
    """Print what the answer printed in its calls; where it did not run, that is the compiler's own text."""
    if evaluation is None or evaluation.outcome not in _RAN:
        return
    text = reduced_log(evaluation.log).strip()
    if text:
        print(f"Your answer printed, in all calls of the check:\n{text}\n")  # noqa: T201 - the output of the cell


def _checked(
    exercise: Exercise, source: str, engine: EventLoopThread, late: Callable[[], object] | None = None
) -> CheckedAnswer:
    try:
        evaluator = engine.evaluator(replace(SIMULATED, target=exercise.gpu))
        return engine.result(check_answer(exercise, source, evaluator), late)
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
