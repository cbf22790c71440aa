"""Storages that launches read, with the contents that they found there."""

import zlib

import numpy as np

from cutegen_nb.simulator.host.torch_memory.reads import Reads
from cutegen_nb.simulator.state.global_memory import GlobalMemory


def memory_of(array):
    memory = GlobalMemory()
    memory.register(array.ctypes.data, array.nbytes, "x")
    return memory, memory.allocations[0]


def test_a_read_has_the_checksum_of_what_was_there_before_the_launch():
    array = np.arange(64, dtype=np.uint8)
    before = zlib.crc32(array.data)
    memory, allocation = memory_of(array)
    allocation.read = True
    reads = Reads()
    reads.end(memory, "add")
    (found,) = reads.found
    assert (found.kernel, found.label, found.digest, found.unchanged) == ("add", "x", before, False)


def test_what_the_launch_before_left_is_unchanged_until_somebody_writes():
    array = np.zeros(64, np.uint8)
    memory, allocation = memory_of(array)
    allocation.read = True
    reads = Reads()
    reads.end(memory, "first")
    reads.clear()
    reads.end(memory, "second")
    assert [one.unchanged for one in reads.found] == [True]
    array[3] = 1
    reads.clear()
    reads.end(memory, "third")
    assert [one.unchanged for one in reads.found] == [False]
