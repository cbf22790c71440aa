"""Storages that the launches of one call loaded from, with a checksum of the bytes found there.

A kernel may only copy an answer that was computed outside every observed operation. Such a kernel is
recognised by the storages that it reads.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cutegen_nb.simulator.state.global_memory import GlobalMemory

_MOST_BYTES = 64 << 20
"""Largest storage, in bytes, whose checksum is taken. Larger storages are not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One storage that a launch loaded from."""

    kernel: str
    """Name of the kernel."""
    label: str
    """Name of the storage in findings."""
    address: int
    """Address of the storage's first byte."""
    size_bytes: int
    """Size of the whole storage in bytes."""
    digest: int
    """``zlib.crc32`` of the storage's bytes before the launch."""
    unchanged: bool
    """True if the bytes are those that the previous launch to touch the storage left there."""


@dataclass(slots=True)
class Reads:
    """Storages read since the last reset."""

    found: list[Read] = field(default_factory=list)
    """Reads in order, one per launch and storage."""
    _left: dict[int, int] = field(default_factory=dict)
    """Checksum of each storage after the last launch that touched it, by address; kept over resets."""

    def clear(self) -> None:
        """Forget the reads, but keep the checksums that launches left."""
        self.found = []

    def end(self, memory: GlobalMemory, kernel: str) -> None:
        """Record the storages that the launch of ``kernel`` loaded from, after it has run."""
        for one in memory.allocations:
            size = one.end - one.address
            if not (one.read or one.written) or size > _MOST_BYTES:
                continue
            digest = _digest_of(one.bytes)
            if one.read and not one.lost:
                # Without a store in this launch there is no copy, and the bytes are still those it found.
                found = digest if one.before is None else _digest_of(one.before)
                self.found.append(
                    Read(
                        kernel=kernel,
                        label=one.label,
                        address=one.address,
                        size_bytes=size,
                        digest=found,
                        unchanged=self._left.get(one.address) == found,
                    )
                )
            self._left[one.address] = digest


def _digest_of(stored: npt.NDArray[np.uint8]) -> int:
    return zlib.crc32(stored.data)
