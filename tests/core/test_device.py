"""Devices of older records are still read."""

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.device import Device
from cutegen_nb.testing.examples import simulated_device


def test_figures_that_an_older_version_did_not_know_are_unknown():
    device = simulated_device()
    stored = encode(device)
    for name in ("clock_hz", "l2_bandwidth_bytes_per_s", "l2_source", "uuid"):
        del stored[name]
    assert decode(Device, stored) == device
