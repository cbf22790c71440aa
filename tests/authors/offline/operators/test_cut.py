"""A problem is cut into operators' parts and loops around them."""

import pytest

from cutegen_nb.authors.offline.operators import cut as cutting
from cutegen_nb.authors.offline.operators.cut import cut, parameter_names
from cutegen_nb.authors.offline.operators.product import ProductOperator
from cutegen_nb.authors.offline.operators.registry import OPERATOR_WRITERS
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.library import parse_library

WRITERS = (*OPERATOR_WRITERS, ProductOperator())


def test_products_are_parts_and_the_costliest_comes_first(traced):
    facts = traced("torch.relu(x @ y) @ z", "torch.rand(64, 32)", "torch.rand(32, 512)", "torch.rand(512, 8)")
    found = cut(facts, WRITERS, ())
    assert list(found.parts) == ["product", "product_2"]
    assert list(found.calls()) == ["product", "product_2"] or set(found.calls()) == set(found.parts)
    assert found.fresh("product") == "product_"


def test_what_the_policy_leaves_to_pytorch_is_no_part(traced):
    facts = traced("torch.relu(x @ y)", "torch.rand(64, 32)", "torch.rand(32, 16)")
    assert cut(facts, WRITERS, parse_library("matmul")).parts == {}
    assert list(cut(facts, WRITERS, ()).parts) == ["product"]


def test_an_operand_that_is_a_view_at_one_size_only_is_taken_as_it_is(traced):
    """Patches of 3·16·16 are a view of 3 × 3 patches without a copy, by chance, but not of 12 × 12."""
    patches = "torch.relu(x).unfold(2, 16, 16).unfold(3, 16, 16).reshape(x.shape[0], -1, 768)"
    facts = traced(f"{patches} @ y", "torch.rand(8, 3, 192, 192)", "torch.rand(768, 512)")
    assert facts.scaled.graph.inputs[0].spec.shape == (8, 3, 48, 48)
    (call,) = cut(facts, WRITERS, ()).calls().values()
    assert [[extent.full for extent in item.shape] for item in call.operands] == [[1152, 768], [768, 512]]
    assert ProductOperator().menu(call)


def test_one_call_makes_both_results_of_a_node(traced):
    facts = traced("[y + 1 for y in torch.topk(x, 3)]", "torch.rand(64, 33)")
    program = cut(facts, WRITERS, ()).program
    (call,), (further,) = (
        [op for op in program.ops.values() if op.op == name] for name in ("call", "result")
    )
    assert (call.call.results, call.dtype) == (2, "float32")
    assert (further.operands, further.dtype) == ((call.name,), "int64")


def test_a_python_loop_of_many_products_is_declined(traced, monkeypatch):
    monkeypatch.setattr(cutting, "_MOST_PRODUCTS", 1)
    facts = traced("torch.tanh(x @ y) @ y", "torch.rand(8, 16)", "torch.rand(16, 16)")
    with pytest.raises(Declined, match=r"computes 2 matrix products, .* at most 1; a loop over steps can be"):
        cut(facts, WRITERS, ())


def test_parameters_have_names_that_nothing_else_has():
    assert parameter_names(("x", "x", "out", "conv"), "conv") == ["x", "x_", "out_", "conv_"]
