"""Batching of ``mma.sync``: neighbouring independent instructions run as one matrix product.

Fragments that several instructions share are unpacked once. Each register of D is a slice of one array of
sums. Where the next products add to just these registers, that array is their C.

Sums have the axes (A, row half, lane, B, column parity): the first, second, fourth and fifth index choose a
register. In memory they follow one another as BLAS leaves them, lanes before registers, where products add to
them, and by register where other instructions read them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutegen_nb.simulator.numbers.formats import F16
from cutegen_nb.simulator.numbers.values import F32, F64, S32, S64, U32, Array, Separable, Value
from cutegen_nb.simulator.ops.lowering import Operation
from cutegen_nb.simulator.ops.sync.async_copy import no_effect
from cutegen_nb.simulator.ops.warp.fragments import (
    GROUPS,
    INTEGERS,
    PLACES,
    Element,
    by_lane,
    chosen_warps,
    column_words,
    half,
    leading,
    require_whole_warps,
    row_words,
    words_of,
)
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.batch import WARP, Batch, Mask

RegisterWriter = Callable[[Batch, Mask | None, Value], None]
"""Function that writes a value to one register for the active lanes."""
_ACCUMULATORS: dict[str, np.dtype[Any]] = {"f32": F32, "f64": F64, "s32": S32}
"""dtype of C and D by type, f16 apart."""
_AT_ONCE = 1 << 17
"""Sums computed at once: 1 MiB of float64, which stay in the cache until they are added to C."""
_KEPT = 4
"""Number of result arrays remembered in ``lanes.sums``, each a possible C of later products."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Shape and types of an ``mma.sync``."""

    m: int
    """Rows of A and D."""
    n: int
    """Columns of B and D."""
    k: int
    """Columns of A and rows of B."""
    a: Element
    """Type of A."""
    b: Element
    """Type of B."""
    c: str
    """Type of C."""
    d: str
    """Type of D."""
    saturate: bool = False
    """True if integer results are clamped to 32 bits instead of wrapping around (``.satfinite``)."""
    xor: bool = False
    """True if b1 elements are combined by exclusive or (``.xor``) instead of and."""

    @property
    def flops(self) -> int:
        """Floating-point or integer operations of a warp: one multiply and one add for each of m × n × k."""
        return 2 * self.m * self.n * self.k


class BatchedProduct:
    """Operation of one mma.sync."""

    def __init__(
        self,
        form: Form,
        instruction: Instruction,
        slots: Sequence[tuple[int, ...]],
        puts: Sequence[RegisterWriter],
    ) -> None:
        self.form = form
        self.instruction = instruction
        self.a, self.b, self.c, self.d = slots
        """Slots of the registers of A, B, C and D."""
        self.puts = tuple(puts)
        """Writers of D's registers."""
        self._alone = Group((self,))

    def __call__(self, lanes: Batch, mask: Mask | None) -> None:
        """Run the product outside any group."""
        self._alone(lanes, mask)


class Group:
    """Operation of several independent products of one form."""

    def __init__(self, products: Sequence[BatchedProduct]) -> None:
        self._first = products[0]
        self._lefts = list(dict.fromkeys(one.a for one in products))
        self._rights = list(dict.fromkeys(one.b for one in products))
        pairs = [(self._lefts.index(one.a), self._rights.index(one.b)) for one in products]
        whole = len(self._lefts) * len(self._rights)
        self._grid = len(set(pairs)) == len(pairs) == whole
        """True if every A is multiplied by every B exactly once, so that one product computes them all."""
        self._pairs = sorted(pairs) if self._grid else pairs
        order = sorted(range(len(pairs)), key=pairs.__getitem__) if self._grid else range(len(pairs))
        self._products = [products[index] for index in order]
        self._slots = [slot for one in self._products for slot in one.c]
        self._tiles = (len(self._lefts), len(self._rights)) if self._grid else (len(pairs), 1)
        """Extents of the axes A and B of the sums."""
        self._added_to = False
        """True once other products have added to the sums of this group."""

    def __call__(self, lanes: Batch, mask: Mask | None) -> None:
        """Run the products for the active warps.

        Raises:
            PartialWarp: a warp executes them with some of its threads only.
        """
        form = self._first.form
        require_whole_warps(lanes, mask, self._first.instruction)
        if lanes.counts_only:
            return
        warps = chosen_warps(lanes, mask)
        left = self._rows(lanes, warps)
        right = column_words(lanes, self._rights, form.b, warps)
        count = len(left)
        added = self._added(lanes, warps, count)
        result = self._empty(count)
        step = max(1, _AT_ONCE // (len(self._products) * form.m * form.n))
        for start in range(0, count, step):
            sums = self._sums(*self._factors(left[start : start + step], right[start : start + step]))
            some = slice(start * WARP, (start + step) * WARP)
            _add(form, sums, added[:, :, some] if added.ndim else added, result[:, :, some])
        self._put(lanes, mask, result, warps)

    def _rows(self, lanes: Batch, warps: Array | None) -> Array:
        """Words of A, whose first axis are the warps."""
        return row_words(lanes, self._lefts, self._first.form.m, self._first.form.a, warps)

    def _elements_of_rows(self, rows: Array) -> Array:
        """Elements of A, (warps, rows, K)."""
        form = self._first.form
        return form.a.decode(rows).reshape(len(rows), -1, form.k)

    def _factors(self, left: Array, right: Array) -> tuple[Array, Array]:
        """Elements of A, (warps, rows, K), and of B, (warps, K, columns), both C-contiguous for BLAS."""
        form, count = self._first.form, len(left)
        # Integers are exact in float32.
        held = F32 if form.a.name in INTEGERS else F64
        rows = self._elements_of_rows(left).astype(held, copy=False)
        columns = form.b.decode(right).reshape(count, -1, form.k)
        return rows, np.ascontiguousarray(columns.swapaxes(1, 2), held)

    def _empty(self, count: int) -> Array:
        """Array for the sums of some warps."""
        form, (rows, columns) = self._first.form, self._tiles
        halves, lanes, held = form.m // GROUPS, count * WARP, _held(form.d)
        if self._added_to:
            return np.empty((rows, halves, lanes, columns, 2), held)
        if form.d == "f16":  # the two columns of a place share a register
            return np.empty((rows, columns, halves, lanes, 2), held).transpose(0, 2, 3, 1, 4)
        return np.empty((rows, columns, halves, 2, lanes), held).transpose(0, 2, 4, 1, 3)

    def _sums(self, left: Array, right: Array) -> Array:
        """Sums of products (warps, rows, K) × (warps, K, columns)."""
        form, (rows, columns) = self._first.form, self._tiles
        if self._grid:
            sums = _product(form, left, right).reshape(len(left), rows, form.m // GROUPS, WARP, columns, 2)
            return sums.transpose(1, 2, 0, 3, 4, 5)
        each = []
        by_fragment = right.reshape(len(right), form.k, PLACES, len(self._rights), 2)
        for row, column in self._pairs:
            part = by_fragment[:, :, :, column].reshape(len(right), form.k, form.n)
            tile = _product(form, left[:, row * form.m : (row + 1) * form.m], part).reshape(
                len(left), form.m // GROUPS, WARP, 1, 2
            )
            each.append(tile.swapaxes(0, 1))
        return np.stack(each)

    def _added(self, lanes: Batch, warps: Array | None, count: int) -> Array:
        """C in the axes of the sums, or one number if all of C is the same."""
        form, registers = self._first.form, lanes.registers
        values = [registers[slot] for slot in self._slots]
        first = values[0]
        plain = first.__class__ is not Separable and first.ndim == 0
        if plain and form.c != "f16" and all(one is first for one in values):
            same: Array = np.asarray(first.view(_ACCUMULATORS[form.c]))
            return same
        rows, columns = self._tiles
        # Values are never changed in place, so the identities of C's registers tell whose sums they are.
        known = lanes.sums.get(tuple(map(id, values))) if warps is None and form.c != "f16" else None
        if known is not None and known.group.tiles_are(self._tiles):
            known.group.note_addition()
            return known.sums.view(_ACCUMULATORS[form.c])
        lead = leading(lanes, warps)
        halves = form.m // GROUPS
        if form.c == "f16":
            words = np.empty((len(self._slots), *lead, GROUPS, PLACES), U32)
            for index, slot in enumerate(self._slots):
                words[index] = words_of(lanes, slot, U32, warps)
            return half(words).reshape(rows, columns, halves, count * WARP, 2).transpose(0, 2, 3, 1, 4)
        result = np.empty((len(self._slots), *lead, GROUPS, PLACES), _ACCUMULATORS[form.c])
        for index, slot in enumerate(self._slots):
            result[index] = words_of(lanes, slot, result.dtype, warps)
        return result.reshape(rows, columns, halves, 2, count * WARP).transpose(0, 2, 4, 1, 3)

    def tiles_are(self, tiles: tuple[int, int]) -> bool:
        """Return whether the extents of the axes A and B are these."""
        return self._tiles == tiles

    def note_addition(self) -> None:
        """Note that products add to the sums of this group."""
        self._added_to = True

    def _put(self, lanes: Batch, mask: Mask | None, result: Array, warps: Array | None) -> None:
        """Write the registers of D, and remember the whole result as a possible C."""
        form = self._first.form
        # Registers in the order of the products: (A, B, row half, column parity, lane).
        each = result.transpose(0, 3, 1, 4, 2)
        if form.d == "f16":  # the two columns of a place share a register, the even one in its low half
            each = result.view(U32).transpose(0, 3, 1, 4, 2)
        views = [by_lane(lanes, each[index], warps) for index in np.ndindex(each.shape[:4])]
        puts = [put for one in self._products for put in one.puts]
        for put, view in zip(puts, views, strict=True):
            put(lanes, mask, view)
        if mask is None and form.d != "f16":
            # Kept with the views themselves, so that their ids stay theirs as long as the entry lives.
            while len(lanes.sums) >= _KEPT:
                lanes.sums.pop(next(iter(lanes.sums)))
            lanes.sums[tuple(map(id, views))] = _Sums(views, result, self)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Result of a group that is a possible C of the next."""

    registers: list[Array]
    """Values of its registers, slices of the sums."""
    sums: Array
    group: Group


def _held(kind: str) -> np.dtype[Any]:
    return F16 if kind == "f16" else _ACCUMULATORS[kind]


def _product(form: Form, left: Array, right: Array) -> Array:
    """Sums of products of (warps, rows, K) and (warps, K, columns), shape (warps, rows, columns)."""
    sums: Array = np.matmul(left, right)
    if form.xor:
        # A bit of a ^ b is set where one of the two is: |a| + |b| − 2 |a & b|.
        return left.sum(axis=2)[:, :, None] + right.sum(axis=1)[:, None, :] - 2 * sums
    return sums


def _add(form: Form, sums: Array, added: Array, result: Array) -> None:
    """Write sums plus C into ``result``, rounded once; integers wrap around or saturate.

    ``sums`` have the warp and its lanes as two axes.
    """
    shape = sums.shape
    if added.ndim:
        added = _by_warp(added, shape)
    result = _by_warp(result, shape)
    if form.d != "s32":
        # One pass, in pieces that stay in the cache: summed in float64, each piece rounded as it is written.
        np.add(sums, added, out=result, dtype=sums.dtype, casting="unsafe")
        return
    # float32 sums plus int32 give float64, which holds them exactly.
    total = np.add(sums, added)
    if form.saturate:
        result[...] = np.clip(total, -(1 << 31), (1 << 31) - 1)
    else:
        result[...] = total.astype(S64)  # the assignment to int32 keeps the low 32 bits


def _by_warp(array: Array, shape: tuple[int, ...]) -> Array:
    """View an array with one axis of lanes as one with two, of warps and their lanes."""
    view = array.view()
    view.shape = shape  # never a copy: it raises where the array cannot be viewed so
    return view


# -- which run together --------------------------------------------------------------------------------------
def grouped(operations: Sequence[Operation]) -> list[Operation]:
    """Join each run of independent products of one form into a group at the place of the first."""
    result = list(operations)
    start = 0
    while start < len(result):
        run = _independent(result, start)
        if len(run) > 1:
            result[start : start + len(run)] = [Group(run), *[no_effect] * (len(run) - 1)]
        start += max(1, len(run))
    return result


def _independent(operations: Sequence[Operation], start: int) -> list[BatchedProduct]:
    """Products from ``start`` on that share one form and use no register that an earlier one writes."""
    run: list[BatchedProduct] = []
    written: set[int] = set()
    for one in operations[start:]:
        if not isinstance(one, BatchedProduct) or (run and one.form != run[0].form):
            break
        if written & {*one.a, *one.b, *one.c, *one.d}:
            break
        written.update(one.d)
        run.append(one)
    return run
