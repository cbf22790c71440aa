"""CuTe DSL kernels whose warps pass tiles over mbarriers, through the real compiler."""

import pytest


@pytest.fixture(scope="module")
def pipelines(simulator_on):
    return simulator_on("sm_90a").run("pipelines")


@pytest.mark.parametrize("way", ["by hand", "by pipeline"])
def test_tiles_pass_from_a_producer_to_a_consumer(pipelines, way):
    assert pipelines[way]
    assert pipelines["findings"] == []


def test_the_compiler_used_the_instructions_meant(pipelines):
    assert {
        "cp.async.mbarrier.arrive.noinc.shared.b64",
        "mbarrier.init.shared.b64",
        "mbarrier.try_wait.parity.shared.b64",
    } <= set(pipelines["names"])


def test_a_consumer_that_does_not_wait_is_found_out(pipelines):
    assert pipelines["without waiting"] == ["async-hazard"]
