"""Tensors of a kernel as text."""

import pytest

from cutegen_nb.authors.offline.fused.lowering import OperandAccess
from cutegen_nb.authors.offline.fused.operands import camel, is_wide, operands, vector_elements
from cutegen_nb.authors.offline.fused.plan import plan
from cutegen_nb.authors.offline.graph.reading import read


@pytest.fixture
def loads(traced):
    (kernel,) = plan(read(traced("x + y", "torch.rand(64, 32).half()", "torch.rand(64, 32)"))).kernels
    access: OperandAccess = kernel.loads
    return operands(access, {"x": "float16", "y": "float32"}.get)


def test_half_precision_is_widened_when_read_and_rounded_when_written(loads):
    half, single = loads
    assert half.load("i") == "x = mX[i].to(cutlass.Float32)"
    assert half.store("i", "v") == "mX[i] = v.to(cutlass.Float16)"
    assert single.load("i") == "y = mY[i]"


def test_the_widest_type_decides_the_elements_of_a_vector(loads):
    assert vector_elements(loads) == 4
    assert vector_elements(loads[:1]) == 8


def test_names_are_in_camel_case():
    assert (camel("sum_1"), camel("x")) == ("Sum1", "X")


def test_offsets_beyond_32_bits_are_wide(traced):
    assert not is_wide(plan(read(traced("torch.relu(x)", "torch.rand(64, 32)"))))
    assert is_wide(plan(read(traced("torch.relu(x)", "torch.rand(2**31)"))))
