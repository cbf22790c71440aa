"""Devices of older records are still read."""

from dataclasses import replace

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.evaluator.process.device import simulated
from cutegen_nb.testing.examples import simulated_device


def test_figures_that_an_older_version_did_not_know_are_unknown():
    device = simulated_device()
    stored = encode(device)
    for name in ("clock_hz", "l2_bandwidth_bytes_per_s", "l2_source", "uuid"):
        del stored[name]
    assert decode(Device, stored) == device


def test_a_simulator_is_labelled_as_such_and_lends_its_name_to_the_roofs_alone():
    simulator = simulated("sm_80")
    assert (simulator.label, simulator.gpu_name) == ("simulator (sm_80)", "A100")
    gpu = replace(simulator, kind=DeviceKind.GPU, name="NVIDIA H200")
    assert (gpu.label, gpu.gpu_name) == ("NVIDIA H200", "NVIDIA H200")
