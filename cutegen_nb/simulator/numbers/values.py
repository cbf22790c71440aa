"""Register values of a batch of threads, and the dtypes behind PTX types.

A register's value is one of

- a NumPy scalar: the same in every thread of the batch;
- an array of shape ``(ctas, 1)``, ``(1, threads)`` or ``(ctas, threads)``, broadcast where it is narrower;
- a :class:`Separable`: the modular sum of a column of per-CTA and a row of per-thread numbers, kept apart.

Indices and addresses are nearly always separable. Their arithmetic then costs ``ctas + threads`` elements
instead of ``ctas × threads``, and their accesses can be classified once for all CTAs. Values are never
changed in place: instructions share them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Value = Any
"""A NumPy scalar, an array or a :class:`Separable`; typed loosely because NumPy's own scalars are."""
Function = Callable[..., Value]
"""Function of values, one for each operand of its instruction."""

DTYPES: dict[str, np.dtype[Any]] = {
    "b8": np.dtype(np.uint8), "u8": np.dtype(np.uint8), "s8": np.dtype(np.int8),
    "b16": np.dtype(np.uint16), "u16": np.dtype(np.uint16), "s16": np.dtype(np.int16),
    "f16": np.dtype(np.float16), "bf16": np.dtype(np.uint16),
    "b32": np.dtype(np.uint32), "u32": np.dtype(np.uint32), "s32": np.dtype(np.int32),
    "f32": np.dtype(np.float32), "f16x2": np.dtype(np.uint32), "bf16x2": np.dtype(np.uint32),
    "tf32": np.dtype(np.uint32), "f32x2": np.dtype(np.uint64),
    "b64": np.dtype(np.uint64), "u64": np.dtype(np.uint64), "s64": np.dtype(np.int64),
    "f64": np.dtype(np.float64), "pred": np.dtype(np.bool_),
    "e4m3": np.dtype(np.uint8), "e5m2": np.dtype(np.uint8),
    "e4m3x2": np.dtype(np.uint16), "e5m2x2": np.dtype(np.uint16),
    "u16x2": np.dtype(np.uint32), "s16x2": np.dtype(np.uint32),
}  # fmt: skip
"""PTX type → dtype that holds its bits (bfloat16 and packed types as unsigned bits)."""

U32, U64, S32, S64 = DTYPES["u32"], DTYPES["u64"], DTYPES["s32"], DTYPES["s64"]
F32, F64, BOOL = DTYPES["f32"], DTYPES["f64"], DTYPES["pred"]


class Separable:
    """``column + row`` modulo ``2**bits``: ``column`` of shape (ctas, 1), ``row`` of shape (1, threads)."""

    __slots__ = ("_full", "column", "row", "unsigned")
    dtype = None
    """Never a real dtype, so that code that needs an array calls :meth:`view`."""

    def __init__(self, column: Array, row: Array) -> None:
        self.column = column
        self.row = row
        self.unsigned = row.dtype
        self._full: Array | None = None

    def view(self, dtype: np.dtype[Any]) -> Array:
        """The sum as one (ctas, threads) array, computed at the first call."""
        if self._full is None:
            self._full = np.add(self.column, self.row)
        return self._full.view(dtype)

    def bounds(self, dtype: np.dtype[Any]) -> tuple[int, int] | None:
        """Least and greatest value, read as ``dtype``; None if a sum may wrap around."""
        column, row = self.column.view(dtype), self.row.view(dtype)
        low = int(column.min()) + int(row.min())
        high = int(column.max()) + int(row.max())
        info = np.iinfo(dtype)
        return (low, high) if info.min <= low and high <= info.max else None

    def disjoint_bits(self) -> bool:
        """Return whether no bit is set both in some column and in some row, so that ``+`` equals ``|``."""
        return not any_bits(self.column) & any_bits(self.row)


def any_bits(value: Value) -> int:
    """Bitwise or of all elements of an unsigned value."""
    return int(np.bitwise_or.reduce(value, axis=None)) if value.ndim else int(value)


def is_column(value: Array) -> bool:
    """Return whether a value varies by CTA only: shape (ctas, 1), more than one CTA."""
    return value.ndim == 2 and value.shape[1] == 1 and value.shape[0] > 1  # noqa: PLR2004 - rank of a batch


def is_row(value: Array) -> bool:
    """Return whether a value varies by thread only: shape (1, threads), more than one thread."""
    return value.ndim == 2 and value.shape[0] == 1 and value.shape[1] > 1  # noqa: PLR2004 - rank of a batch


def modular(value: Value, unsigned: np.dtype[Any]) -> Value:
    """View a value as unsigned numbers; a :class:`Separable` is returned as it is."""
    if value.dtype is unsigned or value.__class__ is Separable:
        return value
    return value.view(unsigned)


def add(x: Value, y: Value) -> Value:
    """Modular sum of two unsigned values, :class:`Separable` where possible."""
    if x.__class__ is not Separable and y.__class__ is not Separable:
        if x.ndim and y.ndim and x.shape != y.shape:
            if is_column(x) and is_row(y):
                return Separable(x, y)
            if is_row(x) and is_column(y):
                return Separable(y, x)
        return np.add(x, y)
    if x.__class__ is not Separable:
        x, y = y, x
    if y.__class__ is Separable:
        return Separable(x.column + y.column, x.row + y.row)
    if y.ndim == 0 or is_column(y):
        return Separable(x.column + y, x.row)
    if is_row(y):
        return Separable(x.column, x.row + y)
    return np.add(x.view(x.unsigned), y)


def negative(x: Value) -> Value:
    """Modular negation, −x mod 2**bits."""
    if x.__class__ is Separable:
        return Separable(np.negative(x.column), np.negative(x.row))
    return np.negative(x)


def subtract(x: Value, y: Value) -> Value:
    """Modular difference, as a sum with the negation where that can stay :class:`Separable`."""
    if (
        x.__class__ is not Separable
        and y.__class__ is not Separable
        and (not x.ndim or not y.ndim or x.shape == y.shape)
    ):
        return np.subtract(x, y)
    return add(x, negative(y))


def multiply(x: Value, y: Value) -> Value:
    """Modular product, :class:`Separable` where one factor is a scalar."""
    if x.__class__ is not Separable and y.__class__ is not Separable:
        return np.multiply(x, y)
    if x.__class__ is not Separable:
        x, y = y, x
    if y.__class__ is Separable or y.ndim:
        return np.multiply(x.view(x.unsigned), y.view(x.unsigned))
    return Separable(x.column * y, x.row * y)  # (c + r) × y = c × y + r × y modulo 2**bits


def widened(value: Value, narrow: np.dtype[Any], wide: np.dtype[Any]) -> Value:
    """Numbers of ``narrow`` as unsigned bits of ``wide``, sign-extended where ``narrow`` is signed."""
    unsigned = np.dtype(f"u{wide.itemsize}")
    # Extending column and row apart is right only if no sum wraps around in the narrow type.
    if value.__class__ is not Separable:
        return (value if value.dtype is narrow else value.view(narrow)).astype(wide).view(unsigned)
    if value.bounds(narrow) is None:
        return value.view(narrow).astype(wide).view(unsigned)
    column = value.column.view(narrow).astype(wide).view(unsigned)
    return Separable(column, value.row.view(narrow).astype(wide).view(unsigned))


def either(x: Value, y: Value, ufunc: Any) -> Value:  # noqa: ANN401 - any NumPy ufunc
    """``x | y`` or ``x ^ y``: a sum where no bit is set in both, so that indices stay :class:`Separable`."""
    if x.__class__ is not Separable and y.__class__ is not Separable:
        apart = x.ndim and y.ndim and x.shape != y.shape and (is_column(x) or is_row(x))
        if apart and (is_column(y) or is_row(y)) and not any_bits(x) & any_bits(y):
            return add(x, y)
        return ufunc(x, y)
    if x.__class__ is not Separable:
        x, y = y, x
    narrow = y.__class__ is not Separable and (y.ndim == 0 or is_column(y) or is_row(y))
    if narrow and x.disjoint_bits() and not (any_bits(x.column) | any_bits(x.row)) & any_bits(y):
        return add(x, y)
    return ufunc(x.view(x.unsigned), y.view(x.unsigned))


def both(x: Value, y: Value) -> Value:
    """``x & y``; a :class:`Separable` with disjoint bits stays separable under a constant mask."""
    if x.__class__ is not Separable and y.__class__ is not Separable:
        return np.bitwise_and(x, y)
    if x.__class__ is not Separable:
        x, y = y, x
    if y.__class__ is Separable or y.ndim or not x.disjoint_bits():
        return np.bitwise_and(x.view(x.unsigned), y.view(x.unsigned))
    column, row = x.column & y, x.row & y
    if not any_bits(column):
        return row
    return column if not any_bits(row) else Separable(column, row)


def shift_left(x: Value, bits: Value) -> Value:
    """``x << bits``; a shift by the width or more gives 0 (PTX ISA, ``shl``: shift amounts are clamped)."""
    width = 8 * (x.unsigned if x.__class__ is Separable else x.dtype).itemsize
    if bits.ndim == 0:
        if int(bits) >= width:
            return multiply(x, _like(x, 0))
        if x.__class__ is Separable:
            return multiply(x, _like(x, 1 << int(bits)))
        return np.left_shift(x, x.dtype.type(bits))
    if x.__class__ is Separable:
        x = x.view(x.unsigned)
    moved = np.left_shift(x, np.minimum(bits, width - 1).astype(x.dtype))
    return np.where(bits < width, moved, x.dtype.type(0))


def shift_right(x: Value, bits: Value, dtype: np.dtype[Any]) -> Value:
    """``x >> bits``, filled with the sign if ``dtype`` is signed; amounts are clamped to the width."""
    width = 8 * dtype.itemsize
    if x.__class__ is Separable:
        # Disjoint bits make the sum an or, which shifts part by part; the sign bit has to be clear.
        low = bits.ndim == 0 and int(bits) < width and x.disjoint_bits()
        if low and not (any_bits(x.column) | any_bits(x.row)) >> (width - 1):
            amount = x.unsigned.type(bits)
            column, row = x.column >> amount, x.row >> amount
            return Separable(column, row) if any_bits(column) else row
        x = x.view(dtype)
    x = x if x.dtype is dtype else x.view(dtype)
    if bits.ndim == 0:
        if int(bits) < width:
            return np.right_shift(x, dtype.type(bits))
        return (
            np.right_shift(x, dtype.type(width - 1)) if dtype.kind == "i" else np.multiply(x, dtype.type(0))
        )
    moved = np.right_shift(x, np.minimum(bits, width - 1).astype(dtype))
    return moved if dtype.kind == "i" else np.where(bits < width, moved, dtype.type(0))


def _like(x: Value, number: int) -> Value:
    kind = x.unsigned if x.__class__ is Separable else x.dtype
    return kind.type(number)
