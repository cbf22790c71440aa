"""Names of a product's file, and its text at each level."""

import ast

import pytest

from cutegen_nb.authors.offline.matmul.source import (
    MatmulVariant,
    ProductFunction,
    function_of,
    more_imports,
    names_of,
    product_of,
)

A, B = "torch.rand(64, 32)", "torch.rand(48, 32)"


def test_a_variable_for_each_input_that_no_other_has(traced):
    names = names_of(traced("x @ y.t()", A, B).full.graph)
    assert len(set(names.texts.values())) == len(names.texts) == 2
    assert names.signature == ("x", "y")
    assert names.bindings == {}


@pytest.mark.parametrize("level", ["naive", "tiled", "blocked", "tensor"])
def test_each_level_is_python_without_a_size_of_the_problem(traced, level):
    product = product_of(traced("x @ y.t()", "torch.rand(613, 419)", "torch.rand(587, 419)"))
    function = ProductFunction(name="product", parameters=("x", "y"), lines=(), value="acc")
    text = function_of(product, MatmulVariant(level=level), function)
    ast.parse(text)
    assert "def product(launch, x, y" in text
    assert not any(number in text for number in ("613", "419", "587"))


def test_only_hopper_needs_more_imports():
    assert more_imports(MatmulVariant(level="naive")) == ()
    assert "import cutlass.pipeline as pipeline" in more_imports(MatmulVariant(level="wgmma"))
