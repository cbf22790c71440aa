"""Factors of ``tcgen05.mma``: elements of A and B from shared memory, and of A from tensor memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutegen_nb.simulator.numbers.values import F32, F64, U32, U64, Array
from cutegen_nb.simulator.ops.tensor.descriptors import UNIT, MatrixDescriptors
from cutegen_nb.simulator.ops.warp.fragments import ELEMENTS

_BYTES = 8


def _small_float(exponent_bits: int, fraction_bits: int) -> Array:
    """Values of all codes of a float without infinities and NaN, as float32 (OCP Microscaling Formats)."""
    codes = np.arange(1 << (1 + exponent_bits + fraction_bits))
    exponent = codes >> fraction_bits & (1 << exponent_bits) - 1
    fraction = codes & (1 << fraction_bits) - 1
    bias = (1 << (exponent_bits - 1)) - 1
    # Normal: 1.f × 2**(e - bias); subnormal (e = 0): 0.f × 2**(1 - bias).
    whole = np.where(exponent > 0, fraction + (1 << fraction_bits), fraction).astype(F64)
    numbers = whole * 2.0 ** (np.maximum(exponent, 1) - bias - fraction_bits)
    return np.where(codes >> (exponent_bits + fraction_bits) == 1, -numbers, numbers).astype(F32)


E2M1: Array = _small_float(2, 1)
"""Value of each of the 16 codes of e2m1."""
_E2M3: Array = _small_float(2, 3)
_E3M2: Array = _small_float(3, 2)
BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4,
    "s8": 8, "u8": 8,
}  # fmt: skip
"""Bits of an element."""


def _nibbles(octets: Array) -> Array:
    """Values of e2m1 elements, two a byte, the low four bits first."""
    codes = np.stack((octets & np.uint8(0xF), octets >> np.uint8(4)), axis=-1)
    return E2M1[codes.reshape(*octets.shape[:-1], -1)]


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
    table = _E2M3 if kind == "e2m3" else _E3M2  # 12 bytes of elements, 4 of padding
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


def from_tensor_memory(words: Array, kind: str) -> Array:
    """Elements of A in tensor memory, float64 (products, rows, K), from words (products, columns, rows)."""
    rows = np.ascontiguousarray(words.swapaxes(1, 2))
    if BITS[kind] == 4:  # noqa: PLR2004 - bits of e2m1
        return _nibbles(rows.view(np.uint8)).astype(F64)
    return ELEMENTS[kind].decode(rows).astype(F64)


def scale_values(octets: Array, kind: str) -> Array:
    """Values of scales, float64: ue8m0 is 2**(code - 127) and NaN for 255; ue4m3 is e4m3 without its sign."""
    if kind == "ue4m3":
        padded = np.zeros((*octets.shape, 4), np.uint8)
        padded[..., 0] = octets & np.uint8(0x7F)
        return ELEMENTS["e4m3"].decode(padded.reshape(*octets.shape[:-1], -1).view(U32))[..., ::4].astype(F64)
    exponent = octets.astype(np.int64)
    values = np.ldexp(1.0, exponent - 127)
    return np.where(exponent == 255, np.nan, values)  # noqa: PLR2004 - the code of NaN


__all__ = ["BITS", "E2M1", "U64", "decoder", "from_shared", "from_tensor_memory", "places_of", "scale_values"]
