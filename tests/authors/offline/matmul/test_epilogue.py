"""The epilogue of a product: triangles, biases, and what it cannot hold."""

import pytest

from cutegen_nb.authors.offline.matmul.epilogue import Triangle
from cutegen_nb.authors.offline.matmul.source import product_of

BM = BN = 4


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("diagonal", [-5, 0, 3])
def test_a_tile_is_outside_exactly_where_the_triangle_keeps_nothing_of_it(upper, diagonal):
    triangle = Triangle(upper, diagonal)
    for tile_m in range(4):
        for tile_n in range(4):
            kept = any(
                n >= m + diagonal if upper else n <= m + diagonal
                for m in range(tile_m * BM, (tile_m + 1) * BM)
                for n in range(tile_n * BN, (tile_n + 1) * BN)
            )
            scope = {"BM": BM, "BN": BN, "tile_m": tile_m, "tile_n": tile_n}
            assert eval(triangle.outside, scope) is not kept


def test_a_bias_is_broadcast_along_the_rows(traced):
    found = product_of(traced("x @ y + z", "torch.rand(64, 32)", "torch.rand(32, 48)", "torch.rand(48)"))
    (bias,) = found.extras
    assert "z" in bias.text
    assert bias.name.startswith("m")


def test_a_triangle_after_the_product_is_known(traced):
    found = product_of(traced("torch.tril(x @ y)", "torch.rand(64, 32)", "torch.rand(32, 64)"))
    assert found.triangle == Triangle(upper=False, diagonal=0)
