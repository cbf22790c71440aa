"""Factors of ``tcgen05.mma``: elements of A and B from shared memory, and of A from tensor memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutegen_nb.simulator.numbers.small_floats import VALUES
from cutegen_nb.simulator.numbers.values import F64, U32, Array
from cutegen_nb.simulator.ops.tensor.descriptors import UNIT, MatrixDescriptors
from cutegen_nb.simulator.ops.warp.fragments import ELEMENTS

_BYTES = 8


BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4,
    "s8": 8, "u8": 8,
}  # fmt: skip
"""Bits of an element."""
HOLDER_SHIFT = {4: 2, 6: 1}
"""Bits of an element → its lowest bit in a byte of tensor memory (CUTLASS,
``experimental/primitives/tcgen05/cp_narrow_a_to_tmem_mma.py``)."""


def _nibbles(octets: Array) -> Array:
    """Values of e2m1 elements, two a byte, the low four bits first."""
    codes = np.stack((octets & np.uint8(0xF), octets >> np.uint8(4)), axis=-1)
    return VALUES["e2m1"][codes.reshape(*octets.shape[:-1], -1)]


def _six_bits(octets: Array, table: Array) -> Array:
    """Values of 6-bit elements, four in three bytes, the lowest bits first."""
    three = octets.reshape(*octets.shape[:-1], -1, 3).astype(U32)
    word = three[..., 0] | three[..., 1] << U32.type(8) | three[..., 2] << U32.type(16)
    codes = word[..., None] >> np.arange(0, 24, 6, dtype=np.uint32) & U32.type(0x3F)
    return table[codes.reshape(*octets.shape[:-1], -1)]


def _unpacked(kind: str, units: Array) -> Array:
    """Values of units of 16 bytes with 16 elements each and padding; (…, units, 16 bytes)."""
    if kind == "e2m1":  # 8 bytes of elements, 8 of padding
        return _nibbles(np.ascontiguousarray(units[..., :8]))
    table = VALUES[kind]  # 12 bytes of elements, 4 of padding
    return _six_bits(np.ascontiguousarray(units[..., :12]), table)


def decoder(kind: str, *, packed: bool) -> Callable[[Array], Array]:
    """Function from bytes (…, units, 16) to values (…, elements), float64.

    ``packed`` is True for kinds that pack 4-bit elements without padding.
    """
    if kind == "e2m1" and packed:
        return lambda units: _nibbles(units.reshape(*units.shape[:-2], -1)).astype(F64)
    if BITS[kind] < _BYTES:
        return lambda units: _unpacked(kind, units).reshape(*units.shape[:-2], -1).astype(F64)
    decode = ELEMENTS[kind].decode
    return lambda units: decode(units.reshape(*units.shape[:-2], -1).view(U32)).astype(F64)


def places_of(where: MatrixDescriptors, count: int, k: int, kind: str, *, transposed: bool) -> Array:
    """Byte addresses of an operand's units: (products, rows, units along K), or (products, K, units)."""
    if not transposed:
        # 4-bit elements of the kinds that pack them: 64 elements in 32 bytes. All others have 32 bytes too.
        return where.rows(count, 2)
    per_unit = 8 * UNIT // max(BITS[kind], _BYTES)
    return where.columns(-(-count // per_unit), k)


def from_shared(
    memory: Array, ctas: Array, places: Array, decode: Callable[[Array], Array], *, transposed: bool
) -> Array:
    """Elements of an operand, float64 (products, rows, K).

    Args:
        memory: shared memory, uint8 of shape (ctas, bytes).
        ctas: CTA of each product.
        places: addresses of the units, as of :func:`places_of`.
        decode: function from bytes to values.
        transposed: True for an MN-major operand.
    """
    units = memory.view(np.complex128)
    starts = ctas * units.shape[1]
    found = units.reshape(-1)[starts[:, None, None] + places // UNIT]
    values = decode(np.ascontiguousarray(found).view(np.uint8).reshape(*found.shape, UNIT))
    return values.swapaxes(1, 2) if transposed else values


def from_tensor_memory(words: Array, kind: str, *, packed: bool) -> Array:
    """Elements of A in tensor memory, float64 (products, rows, K), from words (products, columns, rows).

    ``packed`` is True for kinds that pack 4-bit elements; in others each has a byte, as 6-bit elements have.
    """
    rows = np.ascontiguousarray(words.swapaxes(1, 2))
    if packed and BITS[kind] == 4:  # noqa: PLR2004 - bits of e2m1
        return _nibbles(rows.view(np.uint8)).astype(F64)
    if BITS[kind] < _BYTES:
        codes = rows.view(np.uint8) >> np.uint8(HOLDER_SHIFT[BITS[kind]]) & np.uint8((1 << BITS[kind]) - 1)
        return VALUES[kind][codes].astype(F64)
    return ELEMENTS[kind].decode(rows).astype(F64)
