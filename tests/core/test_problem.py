"""Problems are told apart by their source and their policy, not by their name."""

from dataclasses import replace

from cutegen_nb.core.library import LibraryFamily
from cutegen_nb.testing.examples import relu_problem


def test_the_digest_is_that_of_the_source_alone():
    problem = relu_problem()
    assert replace(problem, name="other", path="elsewhere.py").digest == problem.digest
    assert replace(problem, source=problem.source + "\n").digest != problem.digest


def test_a_problem_states_another_of_the_same_source_and_policy():
    problem = relu_problem()
    assert problem.states(replace(problem, name="other"))
    assert not problem.states(replace(problem, source=problem.source + " "))
    assert not problem.states(replace(problem, library=(next(iter(LibraryFamily)),)))
