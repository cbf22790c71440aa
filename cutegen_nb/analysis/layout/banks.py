"""Shared-memory bank conflicts: the bank of each element and the wavefronts of a warp's access.

Shared memory has 32 banks of 4 bytes; one pass (a "wavefront") returns one word of each bank. Accesses of 8
bytes a lane are served by half-warps, those of 16 bytes by quarter-warps. Matrix rows (ldmatrix, stmatrix)
are served eight at a time (CUDA C++ Programming Guide, "Shared Memory"). The simulator uses the same rule,
which was checked against Nsight Compute.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cutegen_nb.analysis.layout.layout import Layout, parse_layout, parse_swizzle
from cutegen_nb.analysis.layout.partition import Partition, partition
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.layout import LayoutKind, LayoutRecord

BANKS = 32
"""Banks of shared memory."""
BANK_BYTES = 4
"""Bytes of a word, the width of a bank."""
WARP = 32
"""Threads of a warp."""
_MOST_ELEMENTS = 1 << 19
"""Most elements of a shared tensor: 227 KiB, the most that a CTA can have, of 4-bit elements, rounded up to a
power of two."""
_PASS_BYTES = BANKS * BANK_BYTES
"""Bytes that one wavefront serves at most: one word of each bank."""
_ELEMENT_BITS = {
    "bool": 8, "i1": 8, "i4": 4, "u4": 4, "tf32": 32, "f4E2M1FN": 4, "f6E2M3FN": 6, "f6E3M2FN": 6,
    "half": 16, "float": 32, "double": 64, "fp16": 16, "fp32": 32, "fp64": 64, "fp8": 8,
}  # fmt: skip
"""Bits of element types by name; of other types `_TYPE` finds the width in the name."""
_TYPE = re.compile(r"[A-Za-z]+?(\d+)")
"""Element type's name, with its width in bits as the first number."""
Place = tuple[int, int]
"""Row and column of an element in a tile or tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTensor:
    """Tensor in shared memory, assumed to begin at a multiple of its swizzle's period."""

    layout: Layout
    """Layout from coordinates to element indices."""
    element_bits: int
    """Bits of one element."""
    byte_swizzle: Callable[[int], int] | None = None
    """Swizzle of byte addresses, for a pointer that carries one; None otherwise."""

    @property
    def rows(self) -> int:
        """Extent of the first mode."""
        return self.layout.mode(0).size

    @property
    def columns(self) -> int:
        """Product of the extents of all other modes."""
        return self.layout.size // self.rows

    def index(self, place: Place) -> int:
        """Return the index of an element, after the layout's swizzle but without the pointer's."""
        return self.layout(self._coordinate(place))

    def address(self, place: Place) -> int:
        """Return the byte address of an element, relative to the tensor's start.

        For an element narrower than a byte, the address of the byte that it starts in.
        """
        found = self.index(place) * self.element_bits // 8
        # A pointer's swizzle acts on byte addresses, a layout's on element indices.
        return self.byte_swizzle(found) if self.byte_swizzle else found

    def bank(self, place: Place) -> int:
        """Return the bank of the word that an element starts in."""
        # Consecutive 4-byte words lie in consecutive banks.
        return self.address(place) // BANK_BYTES % BANKS

    def _coordinate(self, place: Place) -> int:
        # Integer coordinate of a CuTe layout: rows vary fastest.
        return place[0] + place[1] * self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class WarpAccess:
    """One access of one warp to shared memory, with its wavefronts."""

    places: tuple[Place, ...]
    """First element of each lane, lane 0 first."""
    lane_bytes: int
    """Bytes that each lane accesses."""
    wavefronts: int
    """Passes over the banks that the access takes."""
    least: int
    """Passes that the same number of words needs without conflicts."""
    worst: frozenset[Place]
    """Places whose words share a bank in the worst group of lanes; empty without conflicts."""

    @property
    def conflict_ways(self) -> float:
        """Passes ÷ least passes; 1 without conflicts."""
        return self.wavefronts / self.least if self.least else 1.0


def shared_tensor(record: LayoutRecord) -> SharedTensor:
    """Build the tensor of a record.

    Raises UsageError if its layout or element type is unknown, or if it is larger than shared memory.
    """
    swizzle = parse_swizzle(record.pointer_swizzle) if record.pointer_swizzle else None
    layout = parse_layout(record.text)
    if layout.size > _MOST_ELEMENTS:
        raise UsageError(
            f"{record.text} has {layout.size:,} elements; shared memory holds fewer than {_MOST_ELEMENTS:,}."
        )
    return SharedTensor(layout=layout, element_bits=element_bits(record.element), byte_swizzle=swizzle)


def element_bits(name: str) -> int:
    """Return the bits of an element type as a compiler or a person writes it: ``f16``, ``bf16``, ``float32``.

    Raises UsageError for an unknown name.
    """
    plain = name.strip()
    if plain in _ELEMENT_BITS:
        return _ELEMENT_BITS[plain]
    digits = _TYPE.match(plain)
    if digits and int(digits[1]) in {8, 16, 32, 64, 128}:
        return int(digits[1])
    raise UsageError(f"{name!r} is no element type; write one such as f16, bf16, f32, i8 or f8E4M3FN.")


def along(tensor: SharedTensor, mode: int) -> WarpAccess | None:
    """Return the access of 32 lanes to 32 neighbours along a mode, one element each.

    None if the mode has fewer than 32 elements.
    """
    extent = tensor.rows if mode == 0 else tensor.columns
    if extent < WARP:
        return None
    places = tuple((lane, 0) if mode == 0 else (0, lane) for lane in range(WARP))
    return access(tensor, places, max(1, tensor.element_bits // 8))


def access(tensor: SharedTensor, places: Sequence[Place], lane_bytes: int) -> WarpAccess:
    """Return the access of lanes that start at the given places, with its wavefronts."""
    # Lanes served together: 32 for up to 4 bytes a lane, 16 for 8 bytes, 8 for 16 bytes.
    together = max(1, min(WARP, _PASS_BYTES // lane_bytes))
    passes, least = 0, 0
    worst: tuple[int, frozenset[Place]] = (1, frozenset())
    for first in range(0, len(places), together):
        by_bank = _words_by_bank(tensor, places[first : first + together], lane_bytes)
        # Each bank returns one word a pass, so the bank with most different words sets the number of passes.
        # Lanes that read the same word share it (broadcast).
        most = max(len(words) for words in by_bank.values())
        passes += most
        # Without conflicts each pass serves 32 of the group's different words.
        least += -(-sum(len(words) for words in by_bank.values()) // BANKS)
        if most > worst[0]:
            crowded = next(words for words in by_bank.values() if len(words) == most)
            worst = (most, frozenset(place for held in crowded.values() for place in held))
    return WarpAccess(
        places=tuple(places), lane_bytes=lane_bytes, wavefronts=passes, least=least, worst=worst[1]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TileAccess:
    """All accesses that a tiled copy makes to shared memory for one tile."""

    first: WarpAccess
    """First access of the first warp."""
    worst: WarpAccess
    """Access with the most passes over its least; the first of equals."""
    worst_number: tuple[int, int]
    """Warp of the worst access, and its number within the warp."""
    count: int
    """Number of accesses, over all warps."""
    wavefronts: int
    """Passes of all accesses together."""
    least: int
    """Least passes of all accesses together."""
    atom_bits: int
    """Bits that the copy atom moves at once. A lane moves fewer where its values do not lie side by side."""

    @property
    def apart(self) -> bool:
        """True if the atom's values lie apart in the tensor, so that a lane moves fewer bits at once."""
        return self.first.lane_bytes * 8 < self.atom_bits


@functools.lru_cache(maxsize=64)
def tile_access(record: LayoutRecord) -> TileAccess:
    """Return the shared-memory cost of a recorded access; cached, since words and drawings both ask for it.

    Raises UsageError if the record lacks what it takes.
    """
    if record.kind is not LayoutKind.ACCESS or not record.views or not record.access_bits:
        raise UsageError(
            f"{record.kind.value} {record.name!r} does not say how threads access shared memory."
        )
    tensor, shares = shared_tensor(record), partition(record.views[0])
    # The tensor's own first two modes are what the tile covers; further modes are stages and repetitions.
    columns = tensor.layout.mode(1).size if tensor.layout.rank > 1 else 1
    if shares.rows > tensor.rows or shares.columns > columns:
        raise UsageError(
            f"A tile of {shares.rows} × {shares.columns} is more than a tensor of {tensor.rows} × {columns}."
        )
    width = _width(tensor, shares, max(1, record.access_bits // tensor.element_bits))
    found = [
        ((warp, number), access(tensor, places, max(1, width * tensor.element_bits // 8)))
        for warp in range(-(-shares.threads // WARP))
        for number, places in enumerate(_by_access(shares, warp, width))
    ]
    number, worst = max(found, key=lambda item: item[1].conflict_ways)
    return TileAccess(
        first=found[0][1],
        worst=worst,
        worst_number=number,
        count=len(found),
        wavefronts=sum(item.wavefronts for _, item in found),
        least=sum(item.least for _, item in found),
        atom_bits=record.access_bits,
    )


def _width(tensor: SharedTensor, shares: Partition, most: int) -> int:
    """Return the values that a lane moves at once.

    That is the atom's number where these values lie side by side, else the largest halving of it where they
    do.
    """
    width = most
    while width > 1 and not all(
        _side_by_side(tensor, lane[at : at + width])
        for lane in shares.places
        for at in range(0, len(lane), width)
    ):
        # Vector accesses move a power of two of values.
        width //= 2
    return width


def _side_by_side(tensor: SharedTensor, places: Sequence[Place]) -> bool:
    first, step = tensor.address(places[0]), tensor.element_bits // 8
    # Elements below a byte share byte addresses, so their order cannot be checked; they are accepted.
    if not step:
        return True
    together = len(places) * step
    # A vector access needs its address aligned to its own size.
    return first % together == 0 and all(
        tensor.address(place) == first + number * step for number, place in enumerate(places)
    )


def _by_access(shares: Partition, warp: int, width: int) -> list[tuple[Place, ...]]:
    lanes = shares.places[warp * WARP : (warp + 1) * WARP]
    return [tuple(lane[value] for lane in lanes) for value in range(0, shares.values, width)]


def _words_by_bank(
    tensor: SharedTensor, places: Sequence[Place], lane_bytes: int
) -> dict[int, dict[int, list[Place]]]:
    """Return each bank's words, with the places whose lane asks for each word."""
    found: dict[int, dict[int, list[Place]]] = {}
    for place in places:
        start = tensor.address(place) // BANK_BYTES
        # An access below 4 bytes still takes a whole word.
        for word in range(start, start + max(1, lane_bytes // BANK_BYTES)):
            found.setdefault(word % BANKS, {}).setdefault(word, []).append(place)
    return found
