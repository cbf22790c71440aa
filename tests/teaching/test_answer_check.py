"""An answer is evaluated and marked; a fault of its text needs no evaluation."""

import asyncio
from pathlib import Path

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.teaching.answer import completed
from cutegen_nb.teaching.answer_check import check_answer
from cutegen_nb.teaching.exercise import find_exercise
from cutegen_nb.testing.examples import failed, relu_facts, simulated_device
from cutegen_nb.testing.scripted import RecordedEvaluator

EXERCISE = find_exercise("limits/1")
SOLUTION = (Path(__file__).parents[2] / "notebooks" / "solutions" / "limits_1.py").read_text()


def checked(source, evaluations):
    evaluator = RecordedEvaluator(relu_facts(), simulated_device(), evaluations)
    return asyncio.run(check_answer(EXERCISE, source, evaluator)), evaluator


def test_text_that_does_not_parse_is_a_mark_without_points():
    found, evaluator = checked("def kernel(:\n", {})
    assert (found.mark.points, found.evaluation, evaluator.tiers) == (0, None, [])


def test_a_wrong_answer_has_its_evaluation_and_no_points():
    candidate = Candidate(source=completed(EXERCISE, SOLUTION), author="person")
    wrong = failed(Verdict.WRONG_VALUES, "Output 0 is wrong.")
    found, _ = checked(SOLUTION, {candidate.digest: wrong})
    assert found.mark.points == 0
    assert found.approach == {}
