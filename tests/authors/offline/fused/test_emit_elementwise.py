"""Element-wise kernels in each variant."""

import ast

import pytest

from cutegen_nb.authors.offline.fused.variants import COALESCED, GRID_STRIDE, IN_FLIGHT, VECTORISE

VALUE, INPUTS = "torch.relu(x) * 2", ["torch.rand(64, 32).half()"]


@pytest.mark.parametrize("steps", [(), (COALESCED,), (VECTORISE,), (VECTORISE, IN_FLIGHT, GRID_STRIDE)])
def test_each_variant_is_python_and_reads_and_writes_each_tensor(emitted, steps):
    _, (text,) = emitted(VALUE, INPUTS, *steps)
    ast.parse(text.source)
    assert text.tensors[0].tensor == "mX"
    assert text.scratch == ()


def test_vectors_and_loads_in_flight_are_constants_of_the_module(emitted):
    _, (plain,) = emitted(VALUE, INPUTS, COALESCED)
    _, (wide,) = emitted(VALUE, INPUTS, VECTORISE, IN_FLIGHT)
    assert "VEC" not in plain.constants
    assert wide.constants["VEC"].startswith("8 ")
    assert wide.constants["IN_FLIGHT"].startswith("4 ")
