"""Traced problems for tests of the offline author's parts."""

import pytest
import torch

from cutegen_nb.authors.offline.fused.texts import texts
from cutegen_nb.authors.offline.fused.variants import SIMPLEST, fold
from cutegen_nb.authors.offline.graph.reading import read
from cutegen_nb.core.graph import Ref
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


@pytest.fixture(scope="session")
def computed():
    """Outputs of a graph on given inputs, by PyTorch's own operations."""

    def outputs(graph, given):
        known = {value.name: tensor for value, tensor in zip(graph.inputs, given, strict=True)}

        def value(argument):
            if isinstance(argument, Ref):
                return known[argument.name]
            return [value(one) for one in argument] if isinstance(argument, tuple) else argument

        for node in graph.nodes:
            _, name, overload = node.op.split(".")
            operation = getattr(getattr(torch.ops.aten, name), overload)
            known[node.name] = operation(*map(value, node.args), **{k: value(v) for k, v in node.kwargs})
        return [known[ref.name] for ref in graph.outputs]

    return outputs
