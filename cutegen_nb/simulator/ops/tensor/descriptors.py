"""Descriptors of ``tcgen05``: of matrices in shared memory, and of the product itself.

A shared-memory descriptor has 64 bits (PTX ISA, "Shared memory descriptor"): 0 to 13 start address, 16 to 29
leading byte offset, 32 to 45 stride byte offset, each in units of 16 bytes; 49 to 51 base offset, 52 mode of
the leading offset, 61 to 63 swizzle. The places follow the canonical layouts (PTX ISA, "Canonical Layouts";
CUTLASS, ``mma_sm100_desc.hpp``). A swizzle acts on whole addresses, as it does for TMA.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.numbers.values import U64, Array
from cutegen_nb.simulator.state.tensor_map import WIDE_ATOMS, swizzled

UNIT = 16
"""Bytes of a unit, which is contiguous in every layout."""
_ATOM = 8
"""Rows of a core matrix."""
_FIELD = 0x3FFF
_WIDE_ATOMS = 1
"""Code of the swizzle of 128 bytes in atoms of 32."""
_EXPONENT = {0: 0, _WIDE_ATOMS: 3, 2: 3, 4: 2, 6: 1}
"""Code of the swizzle → its exponent: the pattern has 2**exponent units."""


class UnknownTensorDescriptor(ValueError):
    """Descriptor of a form that the simulator does not know."""


@dataclass(frozen=True, slots=True)
class MatrixDescriptors:
    """Decoded shared-memory descriptors, one for each product; int64 arrays of shape (products, 1, 1)."""

    start: Array
    """Start address in bytes."""
    leading: Array
    """Leading dimension byte offset."""
    stride: Array
    """Stride dimension byte offset."""
    code: int
    """Code of the swizzle, the same for all."""

    def rows(self, count: int, units: int) -> Array:
        """Addresses of a K-major operand: (products, rows of M or N, units along K)."""
        row, along = np.arange(count)[:, None], np.arange(units)
        if not self.code:
            # ((8, m), (16 B, 2)) : ((16 B, SBO), (1, LBO))
            return self.start + row % _ATOM * UNIT + row // _ATOM * self.stride + along * self.leading
        if self.code == _WIDE_ATOMS:
            raise UnknownTensorDescriptor("swizzle in atoms of 32 bytes of a K-major operand")
        # ((8, m), (16 B, 2)) : ((S, SBO), (1, 16 B))
        span = UNIT << _EXPONENT[self.code]
        return self._swizzled(self.start + row % _ATOM * span + row // _ATOM * self.stride + along * UNIT)

    def columns(self, units: int, depth: int) -> Array:
        """Addresses of an MN-major operand: (products, K, units along M or N)."""
        k, unit = np.arange(depth)[:, None], np.arange(units)
        if not self.code:
            # ((16 B, 1, m), (8, k)) : ((1, 16 B, SBO), (16 B, LBO))
            return self.start + unit * self.stride + k % _ATOM * UNIT + k // _ATOM * self.leading
        # ((16 B, S / 16, m), (8, k)) : ((1, 16 B, LBO), (S, SBO)); 4 rows of K in atoms of 32 bytes
        many, deep = 1 << _EXPONENT[self.code], _ATOM // 2 if self.code == _WIDE_ATOMS else _ATOM
        far = unit % many * UNIT + unit // many * self.leading
        return self._swizzled(self.start + far + k % deep * (UNIT * many) + k // deep * self.stride)

    def _swizzled(self, places: Array) -> Array:
        return swizzled(places, WIDE_ATOMS if self.code == _WIDE_ATOMS else _EXPONENT[self.code])


def decode_matrices(values: Array) -> MatrixDescriptors:
    """Decode shared-memory descriptors, uint64 of shape (products,).

    Raises:
        UnknownTensorDescriptor: a base offset, an absolute leading address, or swizzles that differ.
    """
    bits = values.astype(U64)
    codes = np.unique(_field(bits, 61, 0b111))
    if _field(bits, 49, 0b111).any():
        raise UnknownTensorDescriptor("base offset")
    if _field(bits, 52, 1).any():
        raise UnknownTensorDescriptor("absolute address of the leading dimension")
    if len(codes) > 1 or int(codes[0]) not in _EXPONENT:
        raise UnknownTensorDescriptor(f"swizzle {', '.join(str(one) for one in codes)}")
    start, leading, stride = (_field(bits, at, _FIELD)[:, None, None] * UNIT for at in (0, 16, 32))
    return MatrixDescriptors(start, leading, stride, int(codes[0]))


def _field(bits: Array, at: int, mask: int) -> Array:
    return (bits >> np.uint64(at) & np.uint64(mask)).astype(np.int64)


# -- the product ---------------------------------------------------------------------------------------------
_F8F6F4 = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
_FACTORS = {
    "f16": {0: "f16", 1: "bf16"}, "tf32": {2: "tf32"}, "f8f6f4": _F8F6F4, "i8": {0: "u8", 1: "s8"},
    "mxf8f6f4": _F8F6F4, "mxf4": {1: "e2m1"}, "mxf4nvf4": {1: "e2m1"},
}  # fmt: skip
"""Kind → code of a type of A or B → its name (PTX ISA, "Instruction descriptor")."""
KINDS = tuple(_FACTORS)
SCALED = ("mxf8f6f4", "mxf4", "mxf4nvf4")
"""Kinds whose blocks have scales."""
_SUMS = {0: "f16", 1: "f32", 2: "s32"}
_OF_D = {
    "f16": ("f16", "f32"), "tf32": ("f32",), "f8f6f4": ("f16", "f32"), "i8": ("s32",),
}  # fmt: skip
_SCALES = {0: "ue4m3", 1: "ue8m0"}
_ROWS = {1: (64, 128), 2: (128, 256)}
"""CTAs of a product → rows that it may have."""
_MOST_COLUMNS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductDescriptor:
    """Decoded instruction descriptor."""

    m: int
    """Rows of A and D, of both CTAs together."""
    n: int
    """Columns of B and D."""
    k: int
    """Columns of A and rows of B."""
    a: str
    """Type of A."""
    b: str
    """Type of B."""
    d: str
    """Type of D."""
    sign: int
    """-1 if one of A and B is negated, else 1."""
    transposed: tuple[bool, bool]
    """True where A or B is MN-major."""
    saturate: bool
    """True if integer results are clamped."""
    scale: str
    """Type of the scales of blocks; empty without scales."""
    scale_ids: tuple[int, int]
    """First byte of the scales of A and of B in a word of tensor memory."""


def decode_product(bits: int, kind: str, ctas: int) -> ProductDescriptor:
    """Decode an instruction descriptor.

    Args:
        bits: the descriptor.
        kind: kind of the instruction: ``f16``, ``mxf4``.
        ctas: CTAs that take part, 1 or 2.

    Raises:
        UnknownTensorDescriptor: a sparse matrix, a type or a shape that the kind does not have.
    """
    scaled, four_bits = kind in SCALED, kind in {"mxf4", "mxf4nvf4"}
    a = _FACTORS[kind].get(bits >> 7 & 0b111)
    b = _FACTORS[kind].get(bits >> 10 & (0b11 if four_bits else 0b111))
    d = "f32" if scaled else _SUMS.get(bits >> 4 & 0b11, "")
    n, m = (bits >> 17 & 0x3F) << 3, (bits >> 27 & 0b11) << 7 if scaled else (bits >> 24 & 0x1F) << 4
    if bits & 0b100:
        raise UnknownTensorDescriptor("sparse matrix A")
    if four_bits and bits >> 31:
        raise UnknownTensorDescriptor("K of 96")
    if a is None or b is None or (not scaled and d not in _OF_D[kind]):
        raise UnknownTensorDescriptor(
            f"instruction descriptor {bits:#010x}, which names a type that .kind::{kind} has not"
        )
    least = 8 * ctas
    if m not in _ROWS[ctas] or not 0 < n <= _MOST_COLUMNS or n % least:
        raise UnknownTensorDescriptor(
            f"shape of {m} rows and {n} columns on {ctas} CTA{'s' if ctas > 1 else ''}"
        )
    return ProductDescriptor(
        m=m, n=n, k={"f16": 16, "tf32": 8}.get(kind, 64 if four_bits else 32), a=a, b=b, d=d,
        sign=-1 if (bits >> 13 ^ bits >> 14) & 1 else 1,
        transposed=(bool(bits >> 15 & 1), bool(bits >> 16 & 1)),
        saturate=kind == "i8" and bool(bits >> 3 & 1), scale=_SCALES[bits >> 23 & 1] if scaled else "",
        scale_ids=(bits >> 29 & 0b11, bits >> 4 & 0b11) if scaled else (0, 0),
    )  # fmt: skip
