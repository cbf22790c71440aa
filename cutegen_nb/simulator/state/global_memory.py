"""Global memory of the simulator: the torch storages that a launch may touch, read and written in place."""

from __future__ import annotations

import bisect
import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cutegen_nb.simulator.ptx.faults import in_bytes

UNSIGNED: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64),
}  # fmt: skip
"""Width in bytes → unsigned dtype."""


_FAR_BYTES = 1 << 34
"""Distance in bytes beyond which an address is not described relative to a tensor: it is null or no pointer.
2^32 elements of 4 bytes reach as far."""
_KEPT_BYTES = 1 << 30
"""Most bytes of all allocations for which a launch keeps a copy of the memory it overwrites."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UninitialisedMarker:
    """Marker that fills memory allocated without a value, so that unwritten elements are recognised."""

    width: int
    """Bytes of an element."""
    bits: int
    """Bit pattern of the marker, which no arithmetic produces."""

    @property
    def other(self) -> int:
        """Bit pattern for a second run: a large number as a float, because another NaN would act the same."""
        return int.from_bytes(b"\x7b" * self.width, "little")


class Allocation:
    """Registered range of process memory, and its state during a launch."""

    __slots__ = (
        "_keeping", "_room", "_untouched", "_views", "address", "before", "bytes", "end", "label", "lost",
        "owner", "poison", "read", "written",
    )  # fmt: skip

    def __init__(self, address: int, size_bytes: int, label: str, owner: object = None) -> None:
        self.address = address
        """Address of the first byte."""
        self.end = address + size_bytes
        """Address of the first byte after the range."""
        self.label = label
        """Name of the range in messages."""
        self.owner = owner
        """Object that keeps the simulator's own memory alive; None for memory that others own."""
        self.written = False
        """True if a kernel stored to the range since this was last set to False."""
        self.read = False
        """True if a kernel loaded from the range since the launch began."""
        self.poison: UninitialisedMarker | None = None
        """Marker that the range was filled with at allocation; None for memory allocated with values."""
        self.before: npt.NDArray[np.uint8] | None = None
        """Copy of the bytes before the first store of the launch; None without a store or without a copy."""
        self.lost = False
        """True if the launch stored to the range and its bytes before were not copied."""
        self._room: npt.NDArray[np.uint8] | None = None
        self._untouched = True
        self._keeping = False
        raw: Any = (ctypes.c_ubyte * size_bytes).from_address(address)
        self.bytes: npt.NDArray[np.uint8] = np.frombuffer(raw, dtype=np.uint8)
        """View of the memory itself."""
        self._views: dict[int, tuple[npt.NDArray[Any], int]] = {}

    def begin(self, *, keeping: bool) -> None:
        """Reset the state for a new launch; with ``keeping``, the first store copies the bytes before it."""
        self.before, self.lost, self._untouched, self._keeping = None, False, True, keeping
        self.read = False

    @property
    def stored(self) -> bool:
        """True if the launch stored to the range."""
        return not self._untouched

    def about_to_store(self) -> None:
        """Note a store before it is carried out; copy the bytes if it is the launch's first."""
        self.written = True
        if self._untouched:
            self._untouched = False
            self.lost = not self._keeping
            if self._keeping:
                self.keep()

    def keep(self) -> None:
        """Copy the bytes as they are now, unless this launch has a copy already."""
        if self.before is None:
            if self._room is None:
                self._room = np.empty_like(self.bytes)
            self._room[:] = self.bytes
            self.before = self._room

    def elements(self, width: int) -> tuple[npt.NDArray[Any], int]:
        """Return a view as unsigned numbers of ``width`` bytes, and the aligned address of the first one."""
        known = self._views.get(width)
        if known is None:
            skip = -self.address % width
            count = (self.end - self.address - skip) // width
            known = (self.bytes[skip : skip + count * width].view(UNSIGNED[width]), self.address + skip)
            self._views[width] = known
        return known


class GlobalMemory:
    """Registered ranges of memory by address. An access must lie inside one of them."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._allocations: list[Allocation] = []

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        """All ranges, in order of address."""
        return tuple(self._allocations)

    def begin(self, *, keeping: bool = True) -> None:
        """Prepare a launch. Bytes that it overwrites are copied first, so that it can run again.

        Nothing is copied without ``keeping``, or where all ranges together exceed a limit.
        """
        total = sum(one.end - one.address for one in self._allocations)
        for one in self._allocations:
            one.begin(keeping=keeping and total <= _KEPT_BYTES)

    def register(
        self, address: int, size_bytes: int, label: str, poison: UninitialisedMarker | None = None
    ) -> None:
        """Allow access to ``size_bytes`` bytes from ``address``; overlapping ranges are replaced.

        ``poison`` is the marker that the range was filled with when it was allocated without a value.
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
        """Register memory that NumPy owns and keep it alive; return its address."""
        address = int(array.ctypes.data)
        self.forget(address)
        self._adopt([*self._allocations, Allocation(address, array.nbytes, label, array)])
        return address

    def forget(self, address: int) -> None:
        """Remove the range that begins at ``address``, if there is one."""
        self._adopt([one for one in self._allocations if one.address != address])

    def clear(self) -> None:
        """Remove every range."""
        self._adopt([])

    def find(self, low: int, high: int) -> Allocation | None:
        """Return the range that holds the bytes from ``low`` to ``high``, exclusive; None if none does."""
        at = bisect.bisect_right(self._starts, low) - 1
        if at < 0:
            return None
        found = self._allocations[at]
        return found if high <= found.end else None

    def describe(self, address: int, width: int, element: int = 0) -> str:
        """Describe for messages the position of ``width`` bytes relative to the nearest registered range.

        The element number is included if ``element``, the bytes of an element, is given.
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
            last = size // element - 1
            name += f", index {index} of 0 to {last} ({in_bytes(element)} each)"
        if address < nearest.address:
            return f"beginning {in_bytes(nearest.address - address)} before the start of {name}"
        if address >= nearest.end:
            gap = address - nearest.end
            where = f"beginning {in_bytes(gap)}" if gap else "right"
            return f"{where} past the end of {name}"
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
