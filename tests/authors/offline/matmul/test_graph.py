"""A traced graph is read as one product with an epilogue."""

import pytest

from cutegen_nb.authors.offline.matmul.graph import has_product
from cutegen_nb.authors.offline.matmul.source import product_of
from cutegen_nb.core.errors import Declined

A, B = "torch.rand(64, 32)", "torch.rand(48, 32)"


def test_transposes_are_views_and_not_copies(traced):
    found = product_of(traced("x @ y.t()", A, B))
    assert (found.m.full, found.n.full, found.k.full, found.batch.full) == (64, 48, 32, 1)
    assert found.k_contiguous == (True, True)
    other = product_of(traced("x @ y", A, "torch.rand(32, 48)"))
    assert other.k_contiguous == (True, False)


def test_work_after_the_product_is_its_epilogue(traced):
    found = product_of(traced("torch.relu(x @ y.t() + z)", A, B, "torch.rand(48)"))
    assert [extra.register for extra in found.extras]
    assert found.output_dtype == "float32"


def test_two_products_and_a_reduction_after_one_are_declined(traced):
    for value in ("(x @ y.t()) @ y", "(x @ y.t()).sum(1)"):
        with pytest.raises(Declined):
            product_of(traced(value, A, B))


def test_a_graph_without_a_product_is_told(traced):
    assert not has_product(traced("torch.relu(x)", A).full.graph)
    assert has_product(traced("x @ y.t()", A, B).full.graph)
