"""Traced problems for tests of the offline author's parts."""

import pytest

from cutegen_nb.authors.offline.fused.texts import texts
from cutegen_nb.authors.offline.fused.variants import SIMPLEST, fold
from cutegen_nb.authors.offline.graph.reading import read
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

SOURCE = """import torch
from torch.nn import functional
def reference({names}): return {value}
def get_inputs(): return [{inputs}]
"""


@pytest.fixture(scope="session")
def traced():
    """Facts of a function of tensors, given as expressions."""
    known = {}

    def of(value, *inputs):
        if (value, inputs) not in known:
            source = SOURCE.format(
                names=", ".join("xyzw"[: len(inputs)]), value=value, inputs=", ".join(inputs)
            )
            problem = Problem(name="given", source=source, form=ProblemForm.FUNCTION, function="reference")
            known[value, inputs] = trace_facts(problem)
        return known[value, inputs]

    return of


@pytest.fixture(scope="session")
def emitted(traced):
    """Plan and kernel texts of a function, with some strategies carried out."""

    def of(value, inputs, *strategies, start=SIMPLEST):
        plan, groups = texts(read(traced(value, *inputs)), fold(start, strategies))
        return plan, [text for _, group in groups for text in group]

    return of
