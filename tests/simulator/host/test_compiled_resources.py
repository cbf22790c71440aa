"""Registers and memory that the compiler gave a kernel reach the profile of its launch."""

import pytest

from cutegen_nb.analysis.hardware.occupancy import occupancy
from cutegen_nb.core.profile import KernelResources


@pytest.fixture(scope="module")
def found(simulator_on):
    return simulator_on("sm_80").run("resources")


def test_a_kernel_with_room_keeps_its_values_in_registers(found):
    roomy = KernelResources(**found["resources"][0])

    assert roomy.architecture == "sm_80"
    assert 64 < roomy.registers <= 255
    assert (roomy.stack_bytes, roomy.spill_store_bytes, roomy.spill_load_bytes) == (0, 0, 0)
    assert roomy.max_threads == 64
    assert roomy.code_bytes % 128 == 0


def test_one_without_room_spills_and_computes_the_same(found):
    narrow = KernelResources(**found["resources"][1])

    assert narrow.registers <= 32
    assert narrow.spill_store_bytes >= 4 * 32
    assert narrow.spill_load_bytes >= narrow.spill_store_bytes
    assert narrow.stack_bytes >= 4 * 32
    assert found["same"]


def test_registers_decide_how_many_ctas_fit(found):
    roomy, narrow = (
        occupancy("sm_80", threads=64, registers=one["registers"], smem_bytes=0) for one in found["resources"]
    )

    assert roomy.limiters == ("registers",)
    assert roomy.active_ctas < narrow.active_ctas == 32
