"""Matrices of 8-bit elements in the registers of a warp: ``ldmatrix`` m8n16 and m16n16, ``stmatrix`` m16n8.

Rows have 16 bytes. Those of 6-bit elements (``b6x16_p32``) hold them in their first 12 bytes, those of 4-bit
elements (``b4x16_p64``) in their first 8; each element arrives in a byte of its own, in its low bits. Thread
``4g + t`` holds, with b = 0 … 3 for the bytes of a register:

- m8n16: row g, columns 4t + b, as m8n8 does with elements of 16 bits.
- m16n16, transposed: in register i of a matrix rows 4t + b of column 8i + g. CUTLASS's example
  ``experimental/primitives/ldmatrix_stmatrix.py`` rests on it, and quack measured the same bytes on sm_120.
- m16n8, transposed: row 2t + b mod 2, column g + 8 × (b div 2) of what is stored, so that fragments of D of
  ``mma.sync``, rounded to bytes, are stored by columns.

The bits of a 4-bit element follow CUTLASS, which shifts them by two for ``mma.sync`` (``fp4_shift_A``).
"""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.numbers.values import U32, Array
from cutegen_nb.simulator.ops.warp.fragments import GROUPS, PLACES

ROW_BYTES = 16
"""Bytes of a row."""
PACKED = {"b6x16_p32": 6, "b4x16_p64": 4}
"""Bits of an element by the format of packed rows."""


def unpacked(rows: Array, bits: int) -> Array:
    """Spread packed elements to bytes: words (…, 4) of a row each, of elements of 6 or 4 bits."""
    octets = np.ascontiguousarray(rows).view(np.uint8)
    used = np.unpackbits(octets[..., : ROW_BYTES * bits // 8], axis=-1, bitorder="little")
    each = np.packbits(used.reshape(*octets.shape, bits), axis=-1, bitorder="little")
    return each[..., 0].view(U32)


def loaded_by_columns(rows: Array) -> Array:
    """Registers of transposed m16n16 matrices.

    Args:
        rows: words (ctas, 2 × matrices, warps, 8 rows, 4), 8 rows of a matrix after the other 8.

    Returns:
        words (ctas, 2 × matrices, warps, 8 groups, 4 places), a register after the other.
    """
    ctas, _, warps = rows.shape[:3]
    octets = np.ascontiguousarray(rows).view(np.uint8).reshape(ctas, -1, 2, warps, GROUPS, 2, GROUPS)
    # (ctas, matrix, row half, warps, row, register, group): the bytes of a register are four of 16 rows.
    columns = octets.transpose(0, 1, 5, 3, 6, 2, 4)
    return np.ascontiguousarray(columns).reshape(ctas, -1, warps, GROUPS, ROW_BYTES).view(U32)


def stored_by_columns(tile: Array) -> Array:
    """Rows of transposed m16n8 matrices: words (…, 8 rows, 4) of words (…, 8 groups, 4 places)."""
    octets = np.ascontiguousarray(tile).view(np.uint8).reshape(*tile.shape[:-2], GROUPS, PLACES, 2, 2)
    # (…, group, place, column half, parity) → (…, place, parity, column half, group).
    rows = np.moveaxis(octets, (-3, -1, -2, -4), (-4, -3, -2, -1))
    return np.ascontiguousarray(rows).reshape(*tile.shape[:-2], GROUPS, ROW_BYTES).view(U32)
