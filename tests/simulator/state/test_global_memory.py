"""Loads, stores, atomics and their counts; accesses that a GPU would fault on."""

import numpy as np

from cutegen_nb.simulator.state.global_memory import GlobalMemory


def test_registering_again_replaces_what_it_overlaps():
    room = np.zeros(4096, np.uint8)
    memory = GlobalMemory()
    address = room.ctypes.data
    memory.register(address, 100, "a")
    memory.register(address, 100, "b")
    assert "'b' (100 bytes)" in memory.describe(address, 1)
    memory.register(address, 200, "c")
    assert memory.find(address, address + 200) is not None
    memory.forget(address)
    assert memory.find(address, address + 1) is None
    assert memory.describe(address, 4) == "no tensor is registered"
