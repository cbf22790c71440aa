"""Check of one answer: evaluation on fresh inputs, approach of its kernel, mark."""

from __future__ import annotations

from dataclasses import dataclass, field

from cutegen_nb.analysis.problem.problem_text import problem_from_string
from cutegen_nb.analysis.strategy.kernel_traits import kernel_traits
from cutegen_nb.analysis.strategy.optimisations import in_force
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.ports import Evaluator
from cutegen_nb.core.strategy import Optimisation
from cutegen_nb.teaching.answer import completed, fault_of
from cutegen_nb.teaching.exercise import Exercise
from cutegen_nb.teaching.marking import AnswerMark, Approach, marked, refused


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedAnswer:
    """Answer to an exercise with its mark, and the evaluation behind it."""

    source: str
    """The student's own part."""
    mark: AnswerMark
    """Points by part."""
    evaluation: Evaluation | None = None
    """Evaluation of the answer; None where it could not be run as it stands."""
    approach: Approach = field(default_factory=dict)
    """Optimisations that the kernel carries out, each with its figure; empty unless it passed."""


async def check_answer(exercise: Exercise, source: str, evaluator: Evaluator) -> CheckedAnswer:
    """Evaluate an answer on inputs drawn afresh and mark it; a fault of the answer is a mark without points.

    Raises EvaluatorError where no evaluation could be had.
    """
    fault = fault_of(exercise, source)
    if fault:
        return CheckedAnswer(source=source, mark=refused(exercise, fault))
    problem = problem_from_string(exercise.problem, name=_identifier(exercise.name))
    candidate = Candidate(source=completed(exercise, source), author="person")
    evaluation = await evaluator.evaluate(problem, candidate, lambda _: None)
    approach: Approach = {}
    if evaluation.passed:
        facts = await evaluator.facts(problem, lambda _: None)
        traits = kernel_traits(candidate.source, facts, evaluation.profile, evaluation.full_size)
        answers = {name: in_force(name, traits) for name in Optimisation}
        approach = {name: answer[1] for name, answer in answers.items() if answer and answer[0]}
    return CheckedAnswer(
        source=source,
        mark=marked(exercise, source, evaluation, approach),
        evaluation=evaluation,
        approach=approach,
    )


def _identifier(name: str) -> str:
    """Return an exercise's name as a problem's: ``threads_1``."""
    return "".join(letter if letter.isalnum() else "_" for letter in name)
