"""Global memory: the torch storages a launch may touch, read and written where they lie."""

from __future__ import annotations

import bisect
import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cutegen_nb.simulator.faults import in_bytes

UNSIGNED: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64),
}  # fmt: skip
"""Bytes → unsigned dtype."""


_FAR_BYTES = 1 << 34
"""An address this far from every tensor was not computed from one of them: null, say, or no pointer at all.
An index of 32 bits into elements of 4 reaches as far."""
_KEPT_BYTES = 1 << 30
"""Memory of a launch is kept as it was before while all of it is no more than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poison:
    """What fresh memory is filled with, so that elements never written are known."""

    width: int
    """Bytes of an element."""
    bits: int
    """A bit pattern that no arithmetic makes."""

    @property
    def other(self) -> int:
        """Another one, for a second run: as a float a large number, because one NaN is like another."""
        return int.from_bytes(b"\x7b" * self.width, "little")


class Allocation:
    """One registered range of process memory."""

    __slots__ = (
        "_keeping", "_room", "_untouched", "_views", "address", "before", "bytes", "end", "label", "lost",
        "owner", "poison", "read", "written",
    )  # fmt: skip

    def __init__(self, address: int, size_bytes: int, label: str, owner: object = None) -> None:
        self.address = address
        """First byte."""
        self.end = address + size_bytes
        """First byte after it."""
        self.label = label
        """Name for messages."""
        self.owner = owner
        """Keeps memory of our own alive; None for memory that others own."""
        self.written = False
        """Whether a kernel stored to it since this was last set to False."""
        self.read = False
        """Whether a kernel loaded from it since the launch began."""
        self.poison: Poison | None = None
        """What it was filled with when it was allocated without a value; None for memory with values."""
        self.before: npt.NDArray[np.uint8] | None = None
        """Its bytes before the first store of the launch; None where there was none or they are too many."""
        self.lost = False
        """Whether a store of the launch was too large to keep what was there before."""
        self._room: npt.NDArray[np.uint8] | None = None
        self._untouched = True
        self._keeping = False
        raw: Any = (ctypes.c_ubyte * size_bytes).from_address(address)
        self.bytes: npt.NDArray[np.uint8] = np.frombuffer(raw, dtype=np.uint8)
        """The memory itself."""
        self._views: dict[int, tuple[npt.NDArray[Any], int]] = {}

    def begin(self, *, keeping: bool) -> None:
        """A launch begins."""
        self.before, self.lost, self._untouched, self._keeping = None, False, True, keeping
        self.read = False

    def about_to_store(self) -> None:
        """A kernel is about to store to it."""
        self.written = True
        if self._untouched:
            self._untouched = False
            self.lost = not self._keeping
            if self._keeping:
                self.keep()

    def keep(self) -> None:
        """Remember the bytes as they are, if none of this launch are remembered."""
        if self.before is None:
            if self._room is None:
                self._room = np.empty_like(self.bytes)
            self._room[:] = self.bytes
            self.before = self._room

    def elements(self, width: int) -> tuple[npt.NDArray[Any], int]:
        """The memory as unsigned numbers of ``width`` bytes, and the address of the first, aligned."""
        known = self._views.get(width)
        if known is None:
            skip = -self.address % width
            count = (self.end - self.address - skip) // width
            known = (self.bytes[skip : skip + count * width].view(UNSIGNED[width]), self.address + skip)
            self._views[width] = known
        return known


class GlobalMemory:
    """Registered ranges by address. An access must lie inside one of them."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._allocations: list[Allocation] = []

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        """Every range, in order of address."""
        return tuple(self._allocations)

    def begin(self) -> None:
        """A launch begins: what it overwrites is kept, up to a bound, in case it has to run again."""
        total = sum(one.end - one.address for one in self._allocations)
        for one in self._allocations:
            one.begin(keeping=total <= _KEPT_BYTES)

    def register(self, address: int, size_bytes: int, label: str, poison: Poison | None = None) -> None:
        """Allow access to ``size_bytes`` from ``address``; ranges that it overlaps are replaced.

        ``poison`` is what the range was filled with when it was allocated without a value.
        """
        if size_bytes <= 0:
            return
        end = address + size_bytes
        kept = [one for one in self._allocations if one.end <= address or one.address >= end]
        same = [one for one in self._allocations if one.address == address and one.end == end]
        if same:
            same[0].label, same[0].poison = label, poison
            return
        fresh = Allocation(address, size_bytes, label)
        fresh.poison = poison
        self._adopt([*kept, fresh])

    def register_own(self, array: npt.NDArray[np.uint8], label: str) -> int:
        """Register memory that numpy owns and keep it alive; returns its address."""
        address = int(array.ctypes.data)
        self.forget(address)
        self._adopt([*self._allocations, Allocation(address, array.nbytes, label, array)])
        return address

    def forget(self, address: int) -> None:
        """Take back the range that begins at ``address``; nothing happens if none does."""
        self._adopt([one for one in self._allocations if one.address != address])

    def clear(self) -> None:
        """Take back every range."""
        self._adopt([])

    def find(self, low: int, high: int) -> Allocation | None:
        """The range that holds the bytes from ``low`` up to, not including, ``high``; None if none does."""
        at = bisect.bisect_right(self._starts, low) - 1
        if at < 0:
            return None
        found = self._allocations[at]
        return found if high <= found.end else None

    def describe(self, address: int, width: int, element: int = 0) -> str:
        """Where ``width`` bytes at an address lie, relative to the nearest registered range.

        Elements are counted where their size is given.
        """
        if not self._allocations:
            return "no tensor is registered"
        nearest = min(self._allocations, key=lambda one: _distance(one, address))
        if _distance(nearest, address) > _FAR_BYTES:
            return f"at address {address:#x}, nowhere near a tensor"
        size = nearest.end - nearest.address
        name = f"tensor {nearest.label!r} ({size} bytes)"
        if element:
            index = (address - nearest.address) // element
            name += f", element {index} of {size // element} ({in_bytes(element)} each)"
        if address < nearest.address:
            return f"{in_bytes(nearest.address - address)} before the start of {name}"
        if address >= nearest.end:
            gap = address - nearest.end
            return f"{in_bytes(gap)} past the end of {name}" if gap else f"right past the end of {name}"
        past = address + width - nearest.end
        where = f"at byte {address - nearest.address} of {name}"
        return f"{where}, {in_bytes(past)} past its end" if past > 0 else where

    def _adopt(self, allocations: list[Allocation]) -> None:
        self._allocations = sorted(allocations, key=lambda one: one.address)
        self._starts = [one.address for one in self._allocations]


def _distance(one: Allocation, address: int) -> int:
    if address < one.address:
        return one.address - address
    return max(0, address - one.end + 1)
