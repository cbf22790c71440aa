"""Assignments in a notebook: `%cutegen assignment FILE`, and the points of what was checked."""

from __future__ import annotations

from cutegen_nb.core.errors import UsageError
from cutegen_nb.notebook.faults import NotebookUsageError
from cutegen_nb.teaching.assignment import assignment_text, read_assignment
from cutegen_nb.teaching.exercise import Exercise, exercises, find_exercise
from cutegen_nb.teaching.marking import AnswerMark

_OPENED: dict[str, Exercise] = {}
"""Exercises of the assignments that were opened in this kernel, by name."""
_MARKS: dict[str, AnswerMark] = {}
"""Mark of the last check of each exercise in this kernel."""


def open_assignment(path: str) -> str:
    """Make an assignment known to ``%%cutegen check`` and return it in words. Raises UsageError."""
    assignment = read_assignment(path)
    _OPENED.update(assignment.exercises)
    return assignment_text(assignment)


def known_exercises() -> dict[str, Exercise]:
    """Return the exercises by name: those of the opened assignments, then those of the lessons."""
    return {**_OPENED, **exercises()}


def named_exercise(name: str) -> Exercise:
    """Return an exercise by name. Raises UsageError for an unknown one."""
    if name in _OPENED:
        return _OPENED[name]
    try:
        return find_exercise(name)
    except UsageError as error:
        told = (
            f"The opened assignment has {', '.join(_OPENED)}"
            if _OPENED
            else "An exercise of an assignment needs `%cutegen assignment FILE` first"
        )
        raise NotebookUsageError(f"{error}{'' if str(error).endswith('?') else '.'} {told}") from None


def keep_mark(mark: AnswerMark) -> None:
    """Keep the mark of a check for `points`."""
    _MARKS[mark.exercise] = mark


def points(name: str) -> int:
    """Return the points that the last ``%%cutegen check`` of an exercise earned in this kernel.

    As the last line of an nbgrader test cell it gives these points. Raises UsageError for an exercise that
    was not checked.
    """
    exercise = named_exercise(name)
    if exercise.name not in _MARKS:
        raise NotebookUsageError(
            f"{name} was not checked since this notebook's kernel started: run the cell that begins "
            f"with %%cutegen check {name}"
        )
    return _MARKS[exercise.name].points
