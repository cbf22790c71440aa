"""CuTe DSL products by TMA and wgmma, through the real compiler."""

import pytest

PRODUCTS = ("float16", "bfloat16", "e4m3", "int8", "A transposed", "both transposed")


@pytest.fixture(scope="module")
def hopper(simulator_on):
    return simulator_on("sm_90a").run("hopper")


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_is_right_and_clean(hopper, name):
    found = hopper["products"][name]
    assert (found["error"], found["stopped"], found["findings"]) == (0, "", [])


def test_work_and_traffic_are_counted(hopper):
    found = hopper["products"]["float16"]
    # Four CTAs of 64 × 128 of a product 128 × 256 × 384; each loads its rows of A and of B.
    assert found["flops"] == {"tensor.f16": 2 * 128 * 256 * 384}
    assert found["loaded"] == 4 * (64 + 128) * 384 * 2


def test_a_stage_given_away_while_it_is_multiplied_is_found_out(hopper):
    kinds = {kind for kind, _ in hopper["early"]["findings"]}
    assert kinds
    assert kinds <= {"race", "async-hazard"}
    assert "ask for it only when all have used the one before" in str(hopper["early"]["findings"])


def test_sums_that_nobody_waits_for_are_found_out(hopper):
    ((kind, said),) = hopper["no wait"]["findings"]
    assert kind == "async-hazard"
    assert "has not waited for its wgmma (from hopper.py:" in said


def test_a_product_of_tiles_that_have_not_arrived_is_found_out(hopper):
    assert "async-hazard" in {kind for kind, _ in hopper["unwaited"]["findings"]}


def test_a_barrier_that_expects_too_many_bytes_is_explained(hopper):
    assert "Deadlock" in hopper["bytes"]["stopped"]
    assert "16 bytes of transactions" in hopper["bytes"]["stopped"]
