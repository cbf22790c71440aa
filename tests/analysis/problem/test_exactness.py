"""References that give integers for integers, so that a kernel can be held to every bit."""

from dataclasses import replace

import pytest

from cutegen_nb.analysis.problem.exactness import integers_stay_integers
from cutegen_nb.testing.examples import relu_facts


def graph_of(*operations):
    graph = relu_facts().full.graph
    return replace(graph, nodes=tuple(replace(graph.nodes[0], op=f"aten.{one}") for one in operations))


@pytest.mark.parametrize(
    "operations", [("mm.default", "relu.default"), ("sum.dim_IntList",), ("cumsum.default",)]
)
def test_sums_products_and_choices_are_exact(operations):
    assert integers_stay_integers(graph_of(*operations))


@pytest.mark.parametrize("operation", ["div.Tensor", "exp.default", "mean.dim", "rsqrt.default"])
def test_one_operation_that_rounds_is_enough(operation):
    assert not integers_stay_integers(graph_of("mm.default", operation))


def test_an_empty_graph_shows_nothing():
    assert not integers_stay_integers(graph_of())
