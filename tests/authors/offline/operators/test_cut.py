"""A problem is cut into operators' parts and loops around them."""

from cutegen_nb.authors.offline.operators.cut import cut, parameter_names
from cutegen_nb.authors.offline.operators.product import ProductOperator
from cutegen_nb.authors.offline.operators.registry import OPERATOR_WRITERS
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


def test_parameters_have_names_that_nothing_else_has():
    assert parameter_names(("x", "x", "out", "conv"), "conv") == ["x", "x_", "out_", "conv_"]
