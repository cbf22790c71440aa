"""Products as operators in a graph with other work."""

import ast

from cutegen_nb.authors.offline.matmul.strategies import TENSOR
from cutegen_nb.authors.offline.operators.cut import cut
from cutegen_nb.authors.offline.operators.product import ProductOperator


def call_of(traced, value, *inputs):
    (call,) = cut(traced(value, *inputs), (ProductOperator(),), ()).calls().values()
    return call


def test_a_transposed_operand_is_taken_as_it_lies(traced):
    match, *_ = ProductOperator().matches(
        traced("torch.softmax(x @ y.t(), 1)", "torch.rand(64, 32)", "torch.rand(48, 32)").full.graph
    )
    assert [ref.name for ref in match.operands] == ["x", "y"]


def test_a_transposed_operand_is_taken_as_it_lies_beside_one_that_its_view_copies(traced):
    heads = "x.transpose(1, 2).reshape(64, 32)"  # of shape (8, 4, 8, 8)
    call = call_of(
        traced, f"torch.softmax({heads} @ y.t(), 1)", "torch.rand(8, 4, 8, 8)", "torch.rand(48, 32)"
    )
    assert [operand.name for operand in call.operands][1] == "y"


def test_the_function_has_its_own_names_and_passes_over_other_strategies(traced):
    call = call_of(traced, "torch.softmax(x @ y, 1)", "torch.rand(64, 32)", "torch.rand(32, 48)")
    writer = ProductOperator()
    text = writer.write(call, ("row-in-cluster",)).source
    ast.parse(text)
    assert text == writer.write(call, ()).source
    assert f"def {call.name}(launch" in text
    assert writer.write(call, (TENSOR,)).source != text
