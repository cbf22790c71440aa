"""Tensor maps: the 128-byte descriptions of tensors that TMA instructions take (PTX ISA, "Tensor map").

PTX leaves the encoding opaque. The DSL's host code writes it without a driver, so the fields below were found
by compiling programs with one property varied at a time; ``tests/simulator/state/test_tensor_map.py`` repeats
that. As 32-bit words:

- 0, 1: global address
- 2: bits 4 to 6 rank minus 1, 7 to 10 element type, 13 and 14 swizzle, 16 rounding to tf32,
  19 swizzle in atoms of 32 bytes,
  17 and 18 promotion in L2, 21 set for tensors of 128 KiB or more
- 3 to 6: strides of dimensions 1 to 4 in units of 16 bytes, lowest 32 bits; 7: four more bits of each
- 8 to 12: extents of the five dimensions, minus 1
- 13: bits 24 to 31 extent of the box in dimension 0, minus 1; 14: dimensions 1 to 4, a byte each

Maps with other bits set, such as interleaved layouts, element strides or im2col, are refused.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.numbers.values import Array

MAP_BYTES = 128
"""Bytes of a tensor map; the second half is not used by the maps known here."""
ALIGNMENT = 64
"""Alignment of a tensor map in bytes (CUDA driver API, ``CUtensorMap``)."""
MOST_DIMENSIONS = 5
"""Most dimensions of a tensor map."""
STRIDE_UNIT = 16
"""Bytes in which strides are counted."""
_TYPES = {
    0: ("u8", 1), 1: ("u16", 2), 2: ("u32", 4), 3: ("s32", 4), 4: ("u64", 8), 5: ("s64", 8), 6: ("f16", 2),
    7: ("f32", 4), 9: ("f64", 8), 10: ("bf16", 2), 11: ("b4", 1), 12: ("b4", 1),
    13: ("b6", 1),
}  # fmt: skip
"""Code of an element type → its name, as reductions use it, and its bytes. Two elements of 4 bits, packed as
``CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B`` has them, are one byte here. Padded types (``ALIGN16B``) have 16
elements in 16 bytes of shared memory, so that an element is a byte there."""
_PADDED_WORDS = {12: 2, 13: 3}
"""Code of a padded type → 32-bit words of 16 elements in global memory."""
PADDED_ELEMENTS = 16
"""Elements of a padded type that lie together."""
_PACKED = 11
TILED = 0x2
"""Lowest four bits of word 2 in every map of tiles."""
TF32_BIT = 1 << 16
"""Bit of word 2: loads round to tf32."""
WIDE_BIT = 1 << 19
"""Bit of word 2: the swizzle of 128 bytes moves 32 bytes as a whole."""
WIDE_ATOMS = 4
"""Code here of the swizzle of 128 bytes that moves 32 bytes as a whole."""
_IGNORED = (0b11 << 17) | (1 << 21)
"""Bits of word 2 that change no value: promotion in L2, and the mark of large tensors."""


class UnknownTensorMap(ValueError):
    """Bytes that are no tensor map, or one of a kind that the simulator does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMap:
    """Decoded tensor map. Dimension 0 is contiguous."""

    address: int
    """Global address of the first element."""
    extents: tuple[int, ...]
    """Elements of each dimension."""
    strides: tuple[int, ...]
    """Bytes from one index to the next in each dimension; the first is the size of an element."""
    box: tuple[int, ...]
    """Elements of the box in each dimension."""
    kind: str
    """Element type: ``f16``, ``u32`` and so on."""
    per_byte: int
    """Elements, as coordinates count them, in one of the extents: 2 for elements of 4 bits, else 1."""
    padded_words: int
    """32-bit words of 16 elements in global memory where TMA pads them to 16 bytes, else 0."""
    rounds_to_tf32: bool
    """True if loads round float32 elements to tf32."""
    swizzle: int
    """Exponent of the swizzle: 0 for none, 1 for 32 bytes, 2 for 64 bytes, 3 for 128 bytes; or
    :data:`WIDE_ATOMS`."""

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return self.strides[0]

    @property
    def box_bytes(self) -> int:
        """Bytes of a box in shared memory, which a load completes, elements out of bounds included."""
        return int(np.prod(self.box, dtype=np.int64)) * self.element_bytes

    @staticmethod
    def read(data: bytes) -> TensorMap:
        """Decode a tensor map.

        Raises:
            UnknownTensorMap: bits that are not known to have no effect are set.
        """
        words = struct.unpack_from("<14I", data, 8)
        kind = words[0]
        rank = (kind >> 4 & 0b111) + 1
        code = kind >> 7 & 0b1111
        known = 0xF | 0b111 << 4 | 0b1111 << 7 | 0b11 << 13 | TF32_BIT | WIDE_BIT | _IGNORED
        if kind & 0xF != TILED or kind & ~known or rank > MOST_DIMENSIONS or code not in _TYPES:
            raise UnknownTensorMap(f"word 2 is {kind:#010x}")
        if kind & WIDE_BIT and kind >> 13 & 0b11 != 0b11:  # noqa: PLR2004 - the code of 128 bytes
            raise UnknownTensorMap(f"word 2 is {kind:#010x}")
        if words[11] & 0xFFFFFF or words[13]:
            raise UnknownTensorMap(f"words 13 and 15 are {words[11]:#010x} and {words[13]:#010x}")
        name, size = _TYPES[code]
        high = words[5]
        strides = [words[1 + index] | (high >> 4 * index & 0xF) << 32 for index in range(rank - 1)]
        box = [words[11] >> 24, *(words[12] >> 8 * index & 0xFF for index in range(4))]
        per_byte = 2 if code == _PACKED else 1
        extents, sides = ([one + 1 for one in given[:rank]] for given in (words[6:11], box))
        extents[0], sides[0] = -(-extents[0] // per_byte), -(-sides[0] // per_byte)
        return TensorMap(
            address=struct.unpack_from("<Q", data)[0],
            extents=tuple(extents),
            strides=(size, *(STRIDE_UNIT * one for one in strides)),
            box=tuple(sides),
            kind=name,
            per_byte=per_byte,
            padded_words=_PADDED_WORDS.get(code, 0),
            rounds_to_tf32=bool(kind & TF32_BIT),
            swizzle=WIDE_ATOMS if kind & WIDE_BIT else kind >> 13 & 0b11,
        )


def swizzled(addresses: Array, swizzle: int) -> Array:
    """Swizzle byte addresses of shared memory (PTX ISA, "Swizzling modes").

    The 16-byte unit within 32, 64 or 128 bytes (address bits from 4) is combined by exclusive or with the
    number of the 128-byte line within 256, 512 or 1,024 bytes (bits from 7). ``swizzle`` is the exponent of
    :class:`TensorMap`.
    """
    if not swizzle:
        return addresses
    if swizzle == WIDE_ATOMS:  # address bits 5 and 6 by bits 7 and 8
        return addresses ^ (addresses >> 7 & 0b11) << 5
    line = addresses >> 7 & (1 << swizzle) - 1
    return addresses ^ line << 4


def replaced(data: bytes, field: str, ordinal: int, value: int) -> bytes:
    """Tensor map with one field changed (PTX ISA, ``tensormap.replace``).

    Args:
        data: the map.
        field: ``global_address``, ``rank`` (minus 1), ``box_dim``, ``global_dim``, ``global_stride`` (bytes),
            or ``swizzle_mode``.
        ordinal: dimension, of a stride less 1; 0 for other fields.
        value: new value.

    Raises:
        UnknownTensorMap: the field has no known place, or the value does not fit it.
    """
    if field == "global_address":
        return struct.pack("<Q", value) + data[8:]
    words = list(struct.unpack_from("<32I", data))
    if field == "rank":
        words[2] = words[2] & ~(0b111 << 4) | value << 4
    elif field == "swizzle_mode":
        words[2] = words[2] & ~(0b11 << 13) | value << 13
    elif field == "global_dim":
        words[8 + ordinal] = value - 1 & 0xFFFFFFFF
    elif field == "global_stride":
        units = value // STRIDE_UNIT
        words[3 + ordinal] = units & 0xFFFFFFFF
        words[7] = words[7] & ~(0xF << 4 * ordinal) | (units >> 32 & 0xF) << 4 * ordinal
    elif field == "box_dim":
        word, at = (13, 24) if ordinal == 0 else (14, 8 * (ordinal - 1))
        words[word] = words[word] & ~(0xFF << at) | (value - 1 & 0xFF) << at
    else:
        raise UnknownTensorMap(f"field {field} is replaced")
    return struct.pack("<32I", *words)
