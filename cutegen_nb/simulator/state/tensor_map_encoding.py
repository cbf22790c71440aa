"""Encoding of tensor maps as ``cuTensorMapEncodeTiled`` of the CUDA driver does it.

The driver takes the fields in its own codes. The bits are those that the DSL's host code writes
(:mod:`~cutegen_nb.simulator.state.tensor_map`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from cutegen_nb.simulator.state.tensor_map import (
    MAP_BYTES,
    MOST_DIMENSIONS,
    PADDED_ELEMENTS,
    STRIDE_UNIT,
    TF32_BIT,
    TILED,
    WIDE_ATOMS,
    WIDE_BIT,
    UnknownTensorMap,
)

_CODES = {
    0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, 8: 9, 9: 10,
    11: 7 | TF32_BIT >> 7, 13: 11, 14: 12, 15: 13,
}  # fmt: skip
"""``CUtensorMapDataType`` → bits of word 2 from bit 7 on. Types that flush denormals are not known."""
_BITS = {0: 8, 1: 16, 2: 32, 3: 32, 4: 64, 5: 64, 6: 16, 7: 32, 8: 64, 9: 16, 11: 32, 13: 4, 14: 8, 15: 8}
"""``CUtensorMapDataType`` → bits of an element in shared memory."""
_PADDED = (14, 15)
_SPANS = {1: 32, 2: 64, 3: 128, 4: 128}
"""``CUtensorMapSwizzle`` → most bytes of the box in dimension 0."""
_MOST_BOX = 256
_MOST_EXTENT = 1 << 32
_STRIDE_END = 1 << 40


class InvalidTensorMap(ValueError):
    """Fields that the driver refuses with ``CUDA_ERROR_INVALID_VALUE``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledMap:
    """Arguments of ``cuTensorMapEncodeTiled``, in the driver's codes."""

    data_type: int
    """``CUtensorMapDataType``."""
    address: int
    """Global address of the first element."""
    extents: tuple[int, ...]
    """Elements of each dimension."""
    strides: tuple[int, ...]
    """Bytes from one index to the next in each dimension but the first."""
    box: tuple[int, ...]
    """Elements of the box in each dimension."""
    element_strides: tuple[int, ...]
    """Elements from one that is copied to the next, in each dimension."""
    interleave: int
    """``CUtensorMapInterleave``."""
    swizzle: int
    """``CUtensorMapSwizzle``."""
    fill: int
    """``CUtensorMapFloatOOBfill``."""

    def encoded(self) -> bytes:
        """Return the 128 bytes.

        Raises:
            InvalidTensorMap: a field is out of the range that the driver allows.
            UnknownTensorMap: a field has a value whose encoding is not known.
        """
        self._check_known()
        self._check_valid()
        rank = len(self.extents)
        words = [0] * (MAP_BYTES // 4)
        words[0], words[1] = self.address & 0xFFFFFFFF, self.address >> 32
        words[2] = TILED | rank - 1 << 4 | _CODES[self.data_type] << 7 | self._swizzle_bits()
        for index, stride in enumerate(self.strides):
            units = stride // STRIDE_UNIT
            words[3 + index] = units & 0xFFFFFFFF
            words[7] |= (units >> 32) << 4 * index
        for index in range(MOST_DIMENSIONS):
            words[8 + index] = self.extents[index] - 1 if index < rank else 0
        words[13] = self.box[0] - 1 << 24
        for index, side in enumerate(self.box[1:]):
            words[14] |= side - 1 << 8 * index
        return struct.pack("<32I", *words)

    def _swizzle_bits(self) -> int:
        return 3 << 13 | WIDE_BIT if self.swizzle == WIDE_ATOMS else self.swizzle << 13

    def _check_known(self) -> None:
        problems = {
            f"elements have the type {self.data_type} of CUtensorMapDataType": self.data_type not in _CODES,
            "layout is interleaved": self.interleave != 0,
            f"swizzle is {self.swizzle} of CUtensorMapSwizzle": self.swizzle > WIDE_ATOMS,
            "fill is not zero": self.fill != 0,
            "element strides are not 1": any(one != 1 for one in self.element_strides),
        }
        for problem, holds in problems.items():
            if holds:
                raise UnknownTensorMap(problem)

    def _check_valid(self) -> None:
        inner = self.box[0] * _BITS[self.data_type] // 8
        alignment = 2 * STRIDE_UNIT if self.data_type in _PADDED else STRIDE_UNIT
        rules = (
            self.address % alignment == 0,
            all(1 <= extent <= _MOST_EXTENT for extent in self.extents),
            all(stride % alignment == 0 and 0 <= stride < _STRIDE_END for stride in self.strides),
            all(1 <= side <= _MOST_BOX for side in self.box),
            inner % PADDED_ELEMENTS == 0,
            inner <= _SPANS.get(self.swizzle, inner),
        )
        if not all(rules):
            raise InvalidTensorMap(f"{self}")
