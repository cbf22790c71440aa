"""CuTe DSL products by TMA and tcgen05.mma, through the real compiler."""

import pytest


@pytest.fixture(scope="module")
def blackwell(simulator_on):
    return simulator_on("sm_100a").run("blackwell")


@pytest.mark.parametrize("name", ["float16", "A transposed", "int8", "e4m3"])
def test_a_product_is_right_and_clean(blackwell, name):
    found = blackwell["products"][name]
    assert (found["error"], found["stopped"], found["findings"]) == (0, "", [])


def test_products_and_traffic_are_counted(blackwell):
    found = blackwell["products"]["float16"]
    # Four CTAs of 128 × 64 of a product 256 × 128 × 256, 16 of K an instruction.
    assert found["products"] == {"128x64x16 f16": 4 * 256 // 16}
    assert found["loaded"] == 4 * (128 + 64) * 256 * 2


def test_sums_that_are_read_too_early_are_found_and_wrong(blackwell):
    assert {kind for kind, _ in blackwell["early"]["findings"]} == {"async-hazard"}
    assert blackwell["early"]["error"] != 0


def test_columns_that_are_kept_are_found(blackwell):
    assert {kind for kind, _ in blackwell["kept"]["findings"]} == {"tensor-memory-kept"}
    assert blackwell["kept"]["error"] == 0
