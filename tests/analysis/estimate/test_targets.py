"""GPUs that a time can be estimated for, by name and by device."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.estimate.targets import find_target, target_of, with_figures
from cutegen_nb.analysis.hardware.devices import SHEETS
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import UsageError
from cutegen_nb.testing import examples


@pytest.mark.parametrize("name", ["H200", "h200", "NVIDIA H200", "nvidia h200"])
def test_a_target_is_found_by_its_product_in_any_spelling(name):
    assert find_target(name).name == "NVIDIA H200"
    assert find_target("RTX4090").name == "NVIDIA RTX 4090"


def test_an_unknown_target_is_answered_with_the_known():
    with pytest.raises(UsageError, match=r"no data sheet is known for the GPU 'TPU'; known are .*H200"):
        find_target("TPU")


def test_every_data_sheet_gives_a_target_with_all_figures():
    for sheet in SHEETS:
        target = find_target(sheet.product)
        assert target.sheet is sheet
        assert min(target.sms, target.clock_hz, target.l2_bandwidth_bytes_per_s, target.l2_bytes) > 0
        assert 0 < target.latency.l1 < target.latency.l2 < target.latency.dram
        assert 0 < target.mma_sync_fraction <= 1
        assert target.device.kind is DeviceKind.GPU


def test_a_session_is_estimated_for_the_gpu_of_its_figures_and_for_the_default_where_that_is_unknown():
    simulated = examples.simulated_device()
    gpu = replace(simulated, kind=DeviceKind.GPU)
    assert target_of(gpu).name == "NVIDIA A100"
    assert target_of(simulated).name == "NVIDIA A100"
    assert target_of(replace(gpu, name="NVIDIA Unheard Of")).name == "NVIDIA H200"


def test_the_simulator_takes_the_figures_of_the_target_and_keeps_its_own_architecture():
    simulated = examples.simulated_device()
    for target in (None, find_target("RTX 4090")):
        made = with_figures(simulated, target)
        gpu = (target or find_target("H200")).device
        assert made.label == "simulator (sm_80)"
        assert made.gpu_name == gpu.name
        assert (made.bandwidth_bytes_per_s, made.sm_count) == (gpu.bandwidth_bytes_per_s, gpu.sm_count)
        assert target_of(made).name == gpu.name
    gpu = replace(simulated, kind=DeviceKind.GPU)
    assert with_figures(gpu, find_target("H200")) is gpu


def test_a_board_for_graphics_has_few_double_precision_units():
    assert find_target("RTX 4090").pipe_clocks("fp64") > 10 * find_target("H200").pipe_clocks("fp64")
    assert find_target("H200").pipe_clocks("no such pipe") == 0
