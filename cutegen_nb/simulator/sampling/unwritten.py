"""Contents of small tensors that a sampled launch leaves partly unwritten.

Later launches of the call read what earlier ones wrote: a scale, a mean, an index. Where no sampled CTA
wrote, they would read zeros and take branches that they never take after a whole launch.
"""

from __future__ import annotations

import numpy as np

from cutegen_nb.core.profile import SECTOR_BYTES
from cutegen_nb.simulator.state.global_memory import Allocation, GlobalMemory

_MOST_BYTES = 4 << 20
"""Largest tensor that is filled, in a few milliseconds: a statistic of a million rows."""


def fill_unwritten(memory: GlobalMemory) -> None:
    """Give blank sectors of the small tensors that this launch stored to the values of written ones."""
    for one in memory.allocations:
        if one.stored and one.end - one.address <= _MOST_BYTES:
            _fill(one)


def _fill(allocation: Allocation) -> None:
    first = -allocation.address % SECTOR_BYTES
    count = (len(allocation.bytes) - first) // SECTOR_BYTES
    words = allocation.bytes[first : first + count * SECTOR_BYTES].view(np.uint64)
    sectors = words.reshape(count, SECTOR_BYTES // words.itemsize)
    # Fresh memory is zero, so a sector with any other word has been written.
    one, other, third, last = sectors.T
    written = (one | other | third | last) != 0
    values = sectors[written]
    if 0 < len(values) < count:
        sectors[~written] = np.resize(values, (count - len(values), len(sectors.T)))
