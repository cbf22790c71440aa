from __future__ import annotations

import pytest

from cutegen_nb.analysis.problem.problem_text import problem_from_string
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.strategy import Optimisation
from cutegen_nb.teaching.exercise import exercises, find_exercise
from cutegen_nb.teaching.marking import COUNTS


@pytest.mark.parametrize("name", exercises())
def test_every_exercise_states_a_problem_and_targets_that_are_counted(name: str):
    exercise = find_exercise(name)
    assert problem_from_string(exercise.problem, name="x").source == exercise.problem
    assert exercise.points > 0
    assert {target.count for target in exercise.targets if not target.strategy} <= set(COUNTS)
    assert {target.strategy for target in exercise.targets if target.strategy} <= set(Optimisation)
    assert all(target.at_most >= 0 and target.points > 0 and target.hint for target in exercise.targets)
    assert exercise.signature.endswith(", out)")


def test_every_lesson_has_three_exercises():
    lessons = [name.partition("/")[0] for name in exercises()]
    assert {lesson: lessons.count(lesson) for lesson in lessons} == dict.fromkeys(
        (
            "threads",
            "coalescing",
            "shared",
            "layouts",
            "reductions",
            "norms",
            "limits",
            "tensor",
            "copies",
            "hopper",
        ),
        3,
    )


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(UsageError, match=r"there is no exercise 'coalesing/2': did you mean coalescing/2\?"):
        find_exercise("coalesing/2")
    with pytest.raises(UsageError, match="there is threads/1, threads/2"):
        find_exercise("xyz")
