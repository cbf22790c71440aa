"""The problem of the demo is read as text and has a size that no tile divides."""

from pathlib import Path

import cutegen_nb
from cutegen_nb.analysis.problem.problem_text import problem_from_string
from cutegen_nb.core.problem import ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

SOURCE = (Path(cutegen_nb.__file__).parent / "demo_problem.py").read_text()


def test_it_is_a_kernelbench_problem_whose_rows_leave_a_tail():
    problem = problem_from_string(SOURCE, name="demo")
    facts = trace_facts(problem)
    (value,) = facts.full.graph.inputs
    assert problem.form is ProblemForm.KERNELBENCH
    assert value.spec.shape == (509, 1536)
    assert value.spec.shape[0] % 2 == 1
