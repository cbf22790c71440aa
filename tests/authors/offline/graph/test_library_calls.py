"""Operations that a policy leaves to PyTorch become calls of it."""

from dataclasses import replace

import pytest

from cutegen_nb.authors.offline.graph.library_calls import is_left, library_call
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.library import parse_library


@pytest.fixture
def product(traced):
    return next(node for node in traced("x @ y", "torch.rand(64, 32)", "torch.rand(32, 16)").full.graph.nodes)


def test_only_what_the_policy_names_is_left(product):
    assert is_left(product, parse_library("matmul"))
    assert not is_left(product, parse_library("conv"))
    assert not is_left(product, ())


def test_a_call_has_a_place_for_each_tensor(product):
    call, operands = library_call(product, product)
    assert call.text == "torch.mm({}, {})"
    assert [ref.name for ref in operands] == [ref.name for ref in product.args]


def test_a_number_that_follows_the_size_is_declined(product):
    with pytest.raises(Declined, match="depends on the problem's size"):
        library_call(product, replace(product, args=(*product.args, 3)))
