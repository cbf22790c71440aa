"""Which storages the launches of one call stored to, and what they left there.

A kernel's store is seen where it is carried out; and a storage whose bytes differ after a launch was
written to as well, whatever instruction did it.  Both together say, without guessing, whether an output
came from a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cutegen_nb.simulator.memory import Allocation, GlobalMemory

_MOST_BYTES = 64 << 20
"""Storages of a launch are copied and compared up to here; beyond it only the stores themselves count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One storage that a kernel stored to."""

    kernel: str
    """The latest kernel that did."""
    label: str
    """What findings call the storage."""
    size_bytes: int
    """Its whole extent."""
    left: npt.NDArray[np.uint8] | None
    """Its bytes when that kernel had ended; None where they were too many to keep."""


@dataclass(slots=True)
class Writes:
    """Storages written since the last reset, by address."""

    found: dict[int, Written] = field(default_factory=dict)
    """By the storage's first byte."""
    _before: dict[int, npt.NDArray[np.uint8]] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget everything."""
        self.found.clear()
        self._before.clear()

    def begin(self, memory: GlobalMemory) -> None:
        """A launch is about to run."""
        for one in memory.allocations:
            one.written = False
        small = sum(one.end - one.address for one in memory.allocations) <= _MOST_BYTES
        self._before = {one.address: one.bytes.copy() for one in memory.allocations} if small else {}

    def end(self, memory: GlobalMemory, kernel: str) -> None:
        """It has run."""
        for one in memory.allocations:
            if one.written or self._differs(one):
                self.found[one.address] = Written(
                    kernel=kernel,
                    label=one.label,
                    size_bytes=one.end - one.address,
                    left=one.bytes.copy() if one.address in self._before else None,
                )
        self._before = {}

    def _differs(self, one: Allocation) -> bool:
        before = self._before.get(one.address)
        return before is not None and not np.array_equal(before, one.bytes)
