"""Which storages the launches of one call loaded from, and whether their bytes are what was last seen there.

A kernel that only copies an answer, which something else computed where nobody looks, is told by what it
reads.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cutegen_nb.simulator.memory import GlobalMemory

_MOST_BYTES = 64 << 20
"""Storages of more are not followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One storage that a launch loaded from."""

    kernel: str
    """The kernel."""
    label: str
    """What findings call the storage."""
    address: int
    """Its first byte."""
    size_bytes: int
    """Its whole extent."""
    digest: int
    """``zlib.crc32`` of its bytes as the launch found them."""
    unchanged: bool
    """Whether they are what the latest launch before left there."""


@dataclass(slots=True)
class Reads:
    """Storages read since the last reset."""

    found: list[Read] = field(default_factory=list)
    """In order, one a launch and storage."""
    _left: dict[int, int] = field(default_factory=dict)
    """Checksum of each storage that any launch touched, when it had ended; kept over resets."""

    def clear(self) -> None:
        """Forget what was read, but not what was left where."""
        self.found = []

    def end(self, memory: GlobalMemory, kernel: str) -> None:
        """A launch has run."""
        for one in memory.allocations:
            size = one.end - one.address
            if not (one.read or one.written) or size > _MOST_BYTES:
                continue
            digest = _digest_of(one.bytes)
            if one.read and not one.lost:
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
