"""Storages that the launches of one call stored to, with the bytes they left there.

A storage counts as written if a store to it was executed or if its bytes differ after a launch. This tells
whether an output came from a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cutegen_nb.simulator.state.global_memory import Allocation, GlobalMemory

_MOST_BYTES = 64 << 20
"""Most bytes, over all storages of a launch, that are copied and compared. Above this limit only the executed
stores count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageWrite:
    """One storage that a kernel stored to."""

    kernel: str
    """Name of the latest kernel that stored to the storage."""
    label: str
    """Name of the storage in findings."""
    size_bytes: int
    """Size of the whole storage in bytes."""
    left: npt.NDArray[np.uint8] | None
    """Bytes of the storage when that kernel ended; None above the limit of bytes kept."""


@dataclass(slots=True)
class Writes:
    """Storages written since the last reset, by address."""

    found: dict[int, StorageWrite] = field(default_factory=dict)
    """Writes by the address of the storage's first byte."""
    _before: dict[int, npt.NDArray[np.uint8]] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget all writes."""
        self.found.clear()
        self._before.clear()

    def begin(self, memory: GlobalMemory) -> None:
        """Copy the storages before a launch runs, where they are within the limit."""
        for one in memory.allocations:
            one.written = False
        small = sum(one.end - one.address for one in memory.allocations) <= _MOST_BYTES
        self._before = {one.address: one.bytes.copy() for one in memory.allocations} if small else {}

    def end(self, memory: GlobalMemory, kernel: str) -> None:
        """Record the storages that the launch of ``kernel`` wrote."""
        for one in memory.allocations:
            if one.written or self._differs(one):
                self.found[one.address] = StorageWrite(
                    kernel=kernel,
                    label=one.label,
                    size_bytes=one.end - one.address,
                    left=one.bytes.copy() if one.address in self._before else None,
                )
        self._before = {}

    def _differs(self, one: Allocation) -> bool:
        before = self._before.get(one.address)
        return before is not None and not np.array_equal(before, one.bytes)
