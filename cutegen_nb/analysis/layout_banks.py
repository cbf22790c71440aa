"""Which bank of shared memory each element lies in, and what a warp's access costs.

Shared memory has 32 banks of 4 bytes; a pass ("wavefront") gives one word of each. Accesses of 8 bytes a lane
are served by half-warps and those of 16 by quarter-warps, and rows of matrices (ldmatrix, stmatrix) eight at
a time (CUDA C++ Programming Guide, "Shared Memory"; the simulator has the same rule, held to Nsight Compute).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cutegen_nb.analysis.layout import Layout, parse_layout, parse_swizzle
from cutegen_nb.analysis.layout_partition import Partition, partition
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.layout import LayoutKind, LayoutRecord

BANKS = 32
BANK_BYTES = 4
WARP = 32
_MOST_ELEMENTS = 1 << 19
"""4-bit elements in the 227 KiB that a CTA has at most, rounded up."""
_PASS_BYTES = BANKS * BANK_BYTES
_ELEMENT_BITS = {
    "bool": 8, "i1": 8, "i4": 4, "u4": 4, "tf32": 32, "f4E2M1FN": 4, "f6E2M3FN": 6, "f6E3M2FN": 6,
    "half": 16, "float": 32, "double": 64, "fp16": 16, "fp32": 32, "fp64": 64, "fp8": 8,
}  # fmt: skip
_TYPE = re.compile(r"[A-Za-z]+?(\d+)")
Place = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTensor:
    """A tensor in shared memory that begins at a multiple of its swizzle's period."""

    layout: Layout
    """Coordinates to elements."""
    element_bits: int
    """Bits of an element."""
    byte_swizzle: Callable[[int], int] | None = None
    """What byte addresses go through, where the pointer carries a swizzle."""

    @property
    def rows(self) -> int:
        """Extent of the first mode."""
        return self.layout.mode(0).size

    @property
    def columns(self) -> int:
        """Product of the other extents."""
        return self.layout.size // self.rows

    def index(self, place: Place) -> int:
        """The element's index, swizzle of a layout included, that of a pointer not."""
        return self.layout(self._coordinate(place))

    def address(self, place: Place) -> int:
        """Byte address, from the tensor's beginning, of the byte that the element begins in."""
        found = self.index(place) * self.element_bits // 8
        return self.byte_swizzle(found) if self.byte_swizzle else found

    def bank(self, place: Place) -> int:
        """The bank of the word that the element begins in."""
        return self.address(place) // BANK_BYTES % BANKS

    def _coordinate(self, place: Place) -> int:
        return place[0] + place[1] * self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class WarpAccess:
    """One access of one warp."""

    places: tuple[Place, ...]
    """Where each lane's part begins, lane 0 first."""
    lane_bytes: int
    """Bytes of each lane."""
    wavefronts: int
    """Passes it takes."""
    least: int
    """Passes that as many words need at least."""
    worst: frozenset[Place]
    """Places whose words share their bank with others of the pass that is worst; empty without conflicts."""

    @property
    def conflict_ways(self) -> float:
        """Passes over the least; 1 is free of conflicts."""
        return self.wavefronts / self.least if self.least else 1.0


def shared_tensor(record: LayoutRecord) -> SharedTensor:
    """The tensor of a record. Raises UsageError where its layout or element is not known."""
    swizzle = parse_swizzle(record.pointer_swizzle) if record.pointer_swizzle else None
    layout = parse_layout(record.text)
    if layout.size > _MOST_ELEMENTS:
        raise UsageError(
            f"{record.text} has {layout.size:,} elements; shared memory holds fewer than {_MOST_ELEMENTS:,}."
        )
    return SharedTensor(layout=layout, element_bits=element_bits(record.element), byte_swizzle=swizzle)


def element_bits(name: str) -> int:
    """Bits of an element type as the compiler, or a person, writes it: ``f16``, ``bf16``, ``float32``.

    Raises UsageError for a name that is not known.
    """
    plain = name.strip()
    if plain in _ELEMENT_BITS:
        return _ELEMENT_BITS[plain]
    digits = _TYPE.match(plain)
    if digits and int(digits[1]) in {8, 16, 32, 64, 128}:
        return int(digits[1])
    raise UsageError(f"{name!r} is no element type; write one such as f16, bf16, f32, i8 or f8E4M3FN.")


def along(tensor: SharedTensor, mode: int) -> WarpAccess | None:
    """A warp's lanes at 32 neighbours along a mode, an element each; None where there are fewer."""
    extent = tensor.rows if mode == 0 else tensor.columns
    if extent < WARP:
        return None
    places = tuple((lane, 0) if mode == 0 else (0, lane) for lane in range(WARP))
    return access(tensor, places, max(1, tensor.element_bits // 8))


def access(tensor: SharedTensor, places: Sequence[Place], lane_bytes: int) -> WarpAccess:
    """What an access costs whose lanes begin at these places."""
    together = max(1, min(WARP, _PASS_BYTES // lane_bytes))
    passes, least = 0, 0
    worst: tuple[int, frozenset[Place]] = (1, frozenset())
    for first in range(0, len(places), together):
        by_bank = _words_by_bank(tensor, places[first : first + together], lane_bytes)
        most = max(len(words) for words in by_bank.values())
        passes += most
        least += -(-sum(len(words) for words in by_bank.values()) // BANKS)
        if most > worst[0]:
            crowded = next(words for words in by_bank.values() if len(words) == most)
            worst = (most, frozenset(place for held in crowded.values() for place in held))
    return WarpAccess(
        places=tuple(places), lane_bytes=lane_bytes, wavefronts=passes, least=least, worst=worst[1]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TileAccess:
    """All accesses that a tiled copy makes for one tile of a tensor in shared memory."""

    first: WarpAccess
    """The first of the first warp."""
    worst: WarpAccess
    """The one with most passes over its least; the first of them."""
    worst_number: tuple[int, int]
    """Its warp and its number within the warp."""
    count: int
    """How many there are."""
    wavefronts: int
    """Passes of all."""
    least: int
    """Least passes of all."""
    atom_bits: int
    """Bits that the atom moves at once; what a lane of this access reaches may lie apart and be fewer."""

    @property
    def apart(self) -> bool:
        """Whether the atom's values lie apart in the tensor, so that a lane moves fewer at once."""
        return self.first.lane_bytes * 8 < self.atom_bits


def tile_access(record: LayoutRecord) -> TileAccess:
    """What a recorded access costs. Raises UsageError where the record does not say enough."""
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
    """Values that a lane moves at once: as many as the atom says where they lie side by side, else fewer."""
    width = most
    while width > 1 and not all(
        _side_by_side(tensor, lane[at : at + width])
        for lane in shares.places
        for at in range(0, len(lane), width)
    ):
        width //= 2
    return width


def _side_by_side(tensor: SharedTensor, places: Sequence[Place]) -> bool:
    first, step = tensor.address(places[0]), tensor.element_bits // 8
    if not step:
        return True
    together = len(places) * step
    return first % together == 0 and all(
        tensor.address(place) == first + number * step for number, place in enumerate(places)
    )


def _by_access(shares: Partition, warp: int, width: int) -> list[tuple[Place, ...]]:
    lanes = shares.places[warp * WARP : (warp + 1) * WARP]
    return [tuple(lane[value] for lane in lanes) for value in range(0, shares.values, width)]


def _words_by_bank(
    tensor: SharedTensor, places: Sequence[Place], lane_bytes: int
) -> dict[int, dict[int, list[Place]]]:
    """Each bank's words, with the places whose lane asks for them."""
    found: dict[int, dict[int, list[Place]]] = {}
    for place in places:
        start = tensor.address(place) // BANK_BYTES
        for word in range(start, start + max(1, lane_bytes // BANK_BYTES)):
            found.setdefault(word % BANKS, {}).setdefault(word, []).append(place)
    return found
