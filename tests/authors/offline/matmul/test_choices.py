"""Strategies of a product follow from its shape, and variants from strategies."""

from types import SimpleNamespace

import pytest

from cutegen_nb.authors.offline.graph.ir import Extent
from cutegen_nb.authors.offline.matmul.choices import (
    strategies_for,
    suits_tensor_cores,
    variant_for,
    wants_split,
)
from cutegen_nb.authors.offline.matmul.strategies import (
    BLOCKING,
    FEW_ROWS,
    SPLIT,
    SPLIT_IN_REGISTERS,
    TENSOR,
    THREE_PRODUCTS,
    TILES,
    VECTORS,
    WGMMA,
)
from cutegen_nb.core.errors import Declined


def product(m, n, k, *, contiguous=True, dtype="float16"):
    extents = {
        name: Extent(value, min(value, 16)) for name, value in (("m", m), ("n", n), ("k", k), ("batch", 1))
    }
    return SimpleNamespace(
        **extents, k_contiguous=(contiguous, contiguous), operand_dtype=dtype, triangle=None
    )


def names(given):
    return [one.name for one in strategies_for(given)]


def test_a_deep_product_of_few_tiles_is_split_and_a_wide_one_is_not():
    assert wants_split(product(512, 512, 65536))
    assert not wants_split(product(8192, 8192, 65536))
    assert SPLIT in names(product(512, 512, 65536))


def test_a_product_narrower_than_an_mma_stays_on_cuda_cores():
    assert not suits_tensor_cores(product(512, 4, 512, contiguous=False))
    assert BLOCKING in names(product(512, 4, 512, contiguous=False))
    assert WGMMA in names(product(4096, 4096, 4096))


def test_a_small_float32_product_is_not_split_into_fp16_parts():
    small, larger = product(512, 512, 512, dtype="float32"), product(1024, 1024, 512, dtype="float32")
    assert THREE_PRODUCTS not in names(small)
    assert THREE_PRODUCTS in names(larger)
    assert WGMMA in names(product(512, 512, 512)), "16 bits need no parts"


@pytest.mark.parametrize(("dtype", "step"), [("float16", WGMMA), ("float32", THREE_PRODUCTS)])
def test_a_deep_product_is_split_on_hopper_only_where_its_tiles_are_very_few(dtype, step):
    """On an H200 1024 × 1024 × 4096 takes half the time by wgmma, without split-K."""
    deep, few = product(1024, 1024, 4096, dtype=dtype), product(512, 512, 65536, dtype=dtype)
    assert step in names(deep)
    assert step not in names(few)
    for given, on_hopper in ((deep, False), (few, True)):
        (split,) = (item for item in strategies_for(given) if item.name == SPLIT)
        assert (not split.architectures or "sm_90" in split.architectures) is on_hopper


def test_large_weights_that_meet_few_rows_are_split_in_registers():
    layer = product(128, 32768, 32768, dtype="float32")
    assert names(layer).index(THREE_PRODUCTS) + 1 == names(layer).index(SPLIT_IN_REGISTERS)
    assert SPLIT_IN_REGISTERS in names(product(16384, 128, 4096, dtype="float32"))
    for other in (
        product(128, 32768, 32768),  # 16 bits need no parts
        product(1024, 8192, 8192, dtype="float32"),  # enough rows for parts that are written once
        product(128, 2048, 8192, dtype="float32"),  # CTAs too few
        product(128, 32768, 32768, dtype="float32", contiguous=False),
    ):
        assert SPLIT_IN_REGISTERS not in names(other)


def test_a_deep_product_too_narrow_for_an_mma_keeps_split_k_on_hopper():
    (split,) = (
        item for item in strategies_for(product(4, 4096, 4096, contiguous=False)) if item.name == SPLIT
    )
    assert not split.architectures


def test_a_vector_product_has_strategies_of_its_own():
    assert TENSOR not in names(product(4096, 1, 4096))
    assert TILES not in names(product(4096, 1, 4096))


def test_a_kernel_on_tensor_cores_stays_there():
    variant = variant_for(product(512, 512, 512), (TILES, TENSOR, VECTORS))
    assert (variant.level, variant.vectors) == ("tensor", True)
    assert variant_for(product(512, 512, 512), ()).level == "naive"
    assert (
        variant_for(product(8192, 8192, 8192), ()).level == "tiled"
    )  # too much work for one thread an output


def test_what_is_too_large_or_unknown_is_declined():
    with pytest.raises(Declined, match="index tensors in 32 bits"):
        strategies_for(product(65536, 65536, 8))
    with pytest.raises(Declined, match="does not know the strategy 'magic'"):
        variant_for(product(512, 512, 512), ("magic",))


def test_a_large_operand_that_meets_few_rows_is_read_into_registers():
    assert names(product(16, 14336, 4096)) == [FEW_ROWS]
    assert names(product(4096, 7, 4096, dtype="float32")) == [FEW_ROWS], "either side may have them"


@pytest.mark.parametrize(
    "given",
    [
        product(64, 14336, 4096),
        product(32, 4096, 4096, dtype="float32"),
        product(16, 4096, 4096, contiguous=False),
    ],
)
def test_more_rows_or_an_operand_not_contiguous_along_k_take_tiles(given):
    assert FEW_ROWS not in names(given)
