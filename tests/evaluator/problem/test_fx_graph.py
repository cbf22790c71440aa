"""An FX graph becomes plain values."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from cutegen_nb.core.errors import ProblemError
from cutegen_nb.core.graph import Value
from cutegen_nb.evaluator.problem.fx_graph import read_graph, spec_of


def read(function, *tensors):
    inputs = tuple(
        Value(name=name, spec=spec_of(one), path=str(at))
        for at, (name, one) in enumerate(zip("xy", tensors, strict=False))
    )
    return read_graph(make_fx(function)(*tensors), inputs=inputs, scalars=(), parameters=())


def test_copies_and_dead_values_are_left_out():
    graph = read(lambda x: (x.sum(), torch.relu(x.clone().detach()))[1], torch.rand(4, 3))
    assert [node.op for node in graph.nodes] == ["aten.relu.default"]
    assert graph.spec(graph.outputs[0]).shape == (4, 3)


def test_a_tensor_of_the_function_itself_is_a_constant():
    table = torch.tensor([1.0, 2.0, 3.0])
    graph = read(lambda x: x * table, torch.rand(4, 3))
    assert [value.spec.shape for value in graph.constants] == [(3,)]


def test_strides_are_counted_in_elements():
    spec = spec_of(torch.rand(4, 3, dtype=torch.float16).t())
    assert (spec.shape, spec.strides, spec.dtype) == ((3, 4), (1, 3), "float16")


def test_a_number_that_a_graph_cannot_hold_is_named():
    with pytest.raises(ProblemError, match="complex"):
        read(lambda x: x * 2j, torch.rand(4, 3))
