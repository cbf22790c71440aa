"""Matrix descriptors of ``wgmma``: where the elements of an operand lie in shared memory.

A descriptor has 64 bits (PTX ISA, "Matrix Descriptor Format"): bits 0 to 13 start address, 16 to 29 leading
byte offset, 32 to 45 stride byte offset, each in units of 16 bytes; 49 to 51 base offset; 62 and 63 swizzle.

The places follow the canonical layouts (PTX ISA, "Strides"; CUTLASS, ``mma_traits_sm90_gmma.hpp``). They
consist of units of 16 bytes. A swizzle of S bytes acts on whole addresses, as it does for TMA.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.numbers.values import U64, Array
from cutegen_nb.simulator.state.tensor_map import swizzled

UNIT = 16
"""Bytes of a unit, which is contiguous in every layout."""
K_UNITS = 2
"""Units of a row along K: every ``wgmma`` takes 32 bytes of K."""
_ATOM = 8
"""Rows of a core matrix."""
_EXPONENT = {0: 0, 1: 3, 2: 2, 3: 1}
"""Code of the swizzle in a descriptor → its exponent: 128 bytes is 1, 64 bytes 2, 32 bytes 3."""
_FIELD = 0x3FFF


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Decoded descriptors of several operands; int64 arrays of shape (operands, 1, 1)."""

    start: Array
    """Start address in bytes."""
    leading: Array
    """Leading dimension byte offset."""
    stride: Array
    """Stride dimension byte offset."""
    swizzle: int
    """Exponent of the swizzle, the same for all: 0 for none, else 2**exponent × 16 bytes."""

    def rows(self, rows: Array) -> Array:
        """Addresses of a K-major operand: (operands, rows, 2 units along K).

        ``rows`` has the rows of M or N for each operand, int64 of shape (operands or 1, rows).
        """
        along = np.arange(K_UNITS)
        row = rows[..., None]
        if not self.swizzle:
            # ((8, m), (16 B, 2)) : ((16 B, SBO), (1, LBO))
            return self.start + row % _ATOM * UNIT + row // _ATOM * self.stride + along * self.leading
        # ((8, m), (16 B, 2)) : ((S, SBO), (1, 16 B))
        span = UNIT << self.swizzle
        places = self.start + row % _ATOM * span + row // _ATOM * self.stride + along * UNIT
        return swizzled(places, self.swizzle)

    def columns(self, units: Array, depth: int) -> Array:
        """Addresses of an MN-major operand of 16-bit elements: (operands, ``depth``, units along MN).

        ``units`` has the units of 8 elements of M or N for each operand, int64 of shape (operands or 1,
        units); ``depth`` is K.
        """
        k = np.arange(depth)[:, None]
        unit = units[:, None, :]
        if not self.swizzle:
            # ((16 B, 1, m), (8, k)) : ((1, 16 B, SBO), (16 B, LBO))
            return self.start + unit * self.stride + k % _ATOM * UNIT + k // _ATOM * self.leading
        # ((16 B, S / 16, m), (8, k)) : ((1, 16 B, LBO), (S, SBO))
        many = 1 << self.swizzle
        far = unit % many * UNIT + unit // many * self.leading
        return swizzled(self.start + far + k % _ATOM * (UNIT * many) + k // _ATOM * self.stride, self.swizzle)


class UnknownDescriptor(ValueError):
    """Descriptors with a base offset, or of different swizzles in one instruction."""


def decode(values: Array) -> Descriptors:
    """Decode descriptors, uint64 of shape (operands,).

    Raises:
        UnknownDescriptor: a base offset is set, or the swizzles differ.
    """
    bits = values.astype(U64)
    codes = np.unique(_field(bits, 62, 0b11))
    if _field(bits, 49, 0b111).any():
        raise UnknownDescriptor("base offset")
    if len(codes) > 1:
        raise UnknownDescriptor("swizzles that differ between warp groups")
    start, leading, stride = (_field(bits, at, _FIELD)[:, None, None] * UNIT for at in (0, 16, 32))
    return Descriptors(start, leading, stride, _EXPONENT[int(codes[0])])


def _field(bits: Array, at: int, mask: int) -> Array:
    return (bits >> np.uint64(at) & np.uint64(mask)).astype(np.int64)
