"""Marks of a class: every submission of an assignment, evaluated afresh and compared with the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cutegen_nb.core.ports import Evaluator
from cutegen_nb.teaching.answer_check import CheckedAnswer, check_answer
from cutegen_nb.teaching.assignment import Assignment
from cutegen_nb.teaching.exercise import Exercise
from cutegen_nb.teaching.likeness import Pair, pairs
from cutegen_nb.teaching.marking import COUNTS, refused
from cutegen_nb.teaching.submission import Submission, SubmittedAnswer

ALIKE = 0.7
"""Likeness from which two answers are listed for a person to read: in ``test_likeness.py`` a copy with three
changed lines has more, and kernels that work in other ways have less than a third."""

NOT_RUN = "not run"
"""Verdict on a source that could not be run as it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedAnswer:
    """Answer of one student to one exercise, marked and compared."""

    exercise: Exercise
    """The exercise."""
    checked: CheckedAnswer | None = None
    """Source, mark, evaluation and approach; None where nothing was handed in."""
    remark: str = ""
    """Sentence on cells that were left out, a missing answer, or an evaluation that could not be had."""
    nearest: Pair | None = None
    """Most alike answer of another student; None where no other has anything in common."""

    @property
    def points(self) -> int:
        """Points earned."""
        return self.checked.mark.points if self.checked else 0

    @property
    def verdict(self) -> str:
        """Verdict; ``not run`` for a source that could not be run, ``none`` without an answer."""
        if self.checked is None:
            return "none"
        return self.checked.evaluation.label if self.checked.evaluation else NOT_RUN

    @property
    def counts(self) -> dict[str, int]:
        """Counts of one call by name; empty unless the answer passed."""
        found = self.checked.evaluation if self.checked else None
        if found is None or not found.passed or found.profile is None:
            return {}
        return {name: counted(found.profile) for name, counted in COUNTS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentMarks:
    """Marks of one student."""

    student: str
    """Name of the student's file or folder."""
    answers: tuple[MarkedAnswer, ...]
    """Answers in the order of the assignment."""
    faults: tuple[str, ...] = ()
    """Sentence for each file that could not be read, or for having none."""

    @property
    def points(self) -> int:
        """Points earned."""
        return sum(answer.points for answer in self.answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassMarks:
    """Marks of all submissions of an assignment."""

    assignment: Assignment
    """The assignment, as the lecturer's file states it."""
    students: tuple[StudentMarks, ...]
    """Marks by student, in the order of the folder."""
    alike: tuple[tuple[str, Pair], ...]
    """Exercise and pair of students for each two answers that are alike, the most alike first."""


async def mark_class(
    assignment: Assignment,
    submissions: Sequence[Submission],
    evaluator_for: Callable[[Exercise], Evaluator],
    *,
    workers: int = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> ClassMarks:
    """Evaluate every answer afresh, `workers` at once, and compare the sources of each exercise."""
    places = asyncio.Semaphore(workers)

    async def one(submission: Submission, exercise: Exercise) -> MarkedAnswer:
        async with places:
            progress(f"{submission.student}, {exercise.name}")
            answer = submission.answers.get(exercise.name)
            if answer is None:
                missing = f"no cell begins with %%cutegen check {exercise.name}" if submission.answers else ""
                return MarkedAnswer(exercise=exercise, remark=missing)
            return await _marked(exercise, answer, evaluator_for(exercise))

    tasks = [
        asyncio.gather(*(one(each, item) for item in assignment.exercises.values())) for each in submissions
    ]
    found = await asyncio.gather(*tasks)
    compared = {name: _compared(submissions, name) for name in assignment.exercises}
    students = tuple(
        StudentMarks(
            student=submission.student,
            answers=tuple(_with_nearest(answer, submission.student, compared) for answer in answers),
            faults=submission.faults,
        )
        for submission, answers in zip(submissions, found, strict=True)
    )
    return ClassMarks(assignment=assignment, students=students, alike=_alike(compared))


async def _marked(exercise: Exercise, answer: SubmittedAnswer, evaluator: Evaluator) -> MarkedAnswer:
    try:
        checked = await check_answer(exercise, answer.source, evaluator)
    except Exception as error:  # noqa: BLE001 - no submission may stop the marking of the others
        reason = f"not judged, by no fault of the answer that is known: {type(error).__name__}: {error}"
        lost = CheckedAnswer(source=answer.source, mark=refused(exercise, reason))
        return MarkedAnswer(exercise=exercise, checked=lost, remark="judge it by hand, or mark again")
    return MarkedAnswer(exercise=exercise, checked=checked, remark=answer.remark)


def _compared(submissions: Iterable[Submission], name: str) -> list[Pair]:
    return pairs({one.student: one.answers[name].source for one in submissions if name in one.answers})


def _with_nearest(answer: MarkedAnswer, student: str, compared: Mapping[str, list[Pair]]) -> MarkedAnswer:
    if answer.checked is None:
        return answer
    mine = (
        pair
        for pair in compared[answer.exercise.name]
        if student in {pair.first, pair.second} and pair.likeness
    )
    return MarkedAnswer(
        exercise=answer.exercise, checked=answer.checked, remark=answer.remark, nearest=next(mine, None)
    )


def _alike(compared: Mapping[str, list[Pair]]) -> tuple[tuple[str, Pair], ...]:
    found = [(name, pair) for name, each in compared.items() for pair in each if pair.likeness >= ALIKE]
    return tuple(sorted(found, key=lambda one: -one[1].likeness))
