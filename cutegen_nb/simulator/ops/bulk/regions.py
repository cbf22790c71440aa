"""Places that bulk copies read and write: units of global memory, each with its place in shared memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.state.addressing import ListedAddresses, SeparableAddresses
from cutegen_nb.simulator.state.batch import Batch
from cutegen_nb.simulator.state.tensor_map import PADDED_ELEMENTS, TensorMap, swizzled

WIDEST = 16
"""Bytes of the largest unit: the smallest part that a swizzle moves as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Units that some threads copy, one row for each thread."""

    threads: Array
    """Index of each thread into the flattened batch, int64 of shape (threads,)."""
    unit: int
    """Bytes of a unit, a power of two up to :data:`WIDEST`."""
    element: int
    """Bytes of an element, for messages and for comparisons with marked memory."""
    remote: Array
    """Global byte address of each unit, int64 of shape (threads, units)."""
    inside: Array
    """False where a unit lies outside the tensor, bool of that shape."""
    local: Array
    """Byte address of each unit in shared memory, int64 of that shape or (1, units)."""

    @property
    def bytes_each(self) -> int:
        """Bytes that each thread copies; padding is not counted."""
        return self.unit * self.remote.shape[1]

    def chosen(self, rows: Array) -> Region:
        """Region of some of the threads, selected by an index or by booleans."""
        one = len(self.local) == 1
        return replace(
            self, threads=self.threads[rows], remote=self.remote[rows], inside=self.inside[rows],
            local=self.local if one else self.local[rows],
        )  # fmt: skip

    def split(self, size: int) -> Region:
        """Region of the same bytes in units of ``size`` bytes, at most the present ones."""
        parts = np.arange(0, self.unit, size)
        shape = (len(self.threads), -1)
        return replace(
            self, unit=size, element=size, remote=(self.remote[..., None] + parts).reshape(shape),
            inside=np.repeat(self.inside, len(parts), axis=1),
            local=(self.local[..., None] + parts).reshape(len(self.local), -1),
        )  # fmt: skip

    def global_request(self) -> ListedAddresses:
        """Global addresses of the units inside the tensor, each with its thread."""
        lanes = np.broadcast_to(self.threads[:, None], self.inside.shape)
        return ListedAddresses(self.remote[self.inside], lanes[self.inside])

    def shared_request(
        self, lanes: Batch, ctas: Array, threads: Array
    ) -> SeparableAddresses | ListedAddresses:
        """Shared addresses of the units in the memory of some CTAs.

        Args:
            lanes: the batch.
            ctas: CTA whose memory each row of the region is in.
            threads: thread of that CTA to whom each row is attributed.
        """
        same = len(self.local) == 1 or bool((self.local == self.local[:1]).all())
        if same and len(ctas) == lanes.ctas and (ctas == np.arange(lanes.ctas)).all() and _one(threads):
            # One thread of each CTA, at the same places: one row stands for all CTAs.
            row = self.local[0]
            return SeparableAddresses(np.zeros(1, np.int64), row, np.full(len(row), threads[0]))
        shape = (len(ctas), self.local.shape[1])
        places = np.broadcast_to(self.local, shape).ravel()
        return ListedAddresses(places, np.repeat(ctas * lanes.threads + threads, shape[1]))

    def flat(self, lanes: Batch, ctas: Array) -> Array:
        """Number of each unit in the shared memory of the whole batch, (rows, units)."""
        return (ctas[:, None] * lanes.shared.shape[1] + self.local) // self.unit


def _one(numbers: Array) -> bool:
    return bool((numbers == numbers[0]).all())


def linear(threads: Array, remote: Array, local: Array, size: int) -> Region:
    """Region of ``size`` bytes from a global and a shared address each, for copies without a tensor map.

    ``remote`` and ``local`` are int64 of shape (threads,); all are multiples of 16.
    """
    steps = np.arange(0, size, WIDEST)
    addresses = remote[:, None] + steps
    return Region(
        threads=threads, unit=WIDEST, element=1, remote=addresses, inside=np.ones(addresses.shape, np.bool_),
        local=local[:, None] + steps,
    )  # fmt: skip


def boxes(threads: Array, tensor: TensorMap, corner: Array, local: Array, *, by_element: bool) -> Region:
    """Region of the boxes of a tensor at some coordinates.

    Elements of a box lie in shared memory in order, dimension 0 fastest, at swizzled addresses (PTX ISA,
    "Tensor copies").

    Args:
        threads: threads that copy.
        tensor: the map.
        corner: first coordinate of each box, int64 of shape (threads, rank); may lie outside the tensor.
        local: shared address of each box, int64 of shape (threads,).
        by_element: True for units of one element, as reductions need.
    """
    if tensor.padded_words:
        return _padded(threads, tensor, corner, local)
    size = tensor.element_bytes
    unit = size if by_element else _unit(tensor, corner)
    offsets, inside = _offsets(tensor, corner, unit // size)
    within = np.arange(0, tensor.box_bytes, unit)
    starts = local[:1] if _one(local) else local
    return Region(
        threads=threads,
        unit=unit,
        element=size,
        remote=tensor.address + offsets,
        inside=inside,
        local=swizzled(starts[:, None] + within, tensor.swizzle),
    )


def _offsets(tensor: TensorMap, corner: Array, per_unit: int) -> tuple[Array, Array]:
    """Global byte offset of each unit of ``per_unit`` elements, and True where it is inside the tensor.

    Both have the shape (threads, units).
    """
    size, count = tensor.element_bytes, len(corner)
    inner = np.arange(0, tensor.box[0], per_unit)
    first = corner[:, :1] + inner
    inside = ((first >= 0) & (first < tensor.extents[0]))[:, None]
    offsets = (first * size)[:, None]
    for dimension in range(1, len(tensor.box)):
        along = corner[:, dimension, None] + np.arange(tensor.box[dimension])
        there = (along >= 0) & (along < tensor.extents[dimension])
        # Slower dimensions before faster ones: (threads, slow, …, rows, inner).
        inside = (there[:, :, None, None] & inside[:, None]).reshape(count, -1, len(inner))
        far = (along * tensor.strides[dimension])[:, :, None, None]
        offsets = (far + offsets[:, None]).reshape(count, -1, len(inner))
    return offsets.reshape(count, -1), inside.reshape(count, -1)


def _padded(threads: Array, tensor: TensorMap, corner: Array, local: Array) -> Region:
    """Region of boxes whose elements of 4 or 6 bits are padded: 16 of them in 16 bytes of shared memory."""
    words = 4 * np.arange(tensor.padded_words)
    first, *others = tensor.box
    grouped = replace(
        tensor, strides=(4 * tensor.padded_words, *tensor.strides[1:]),
        extents=(-(-tensor.extents[0] // PADDED_ELEMENTS), *tensor.extents[1:]),
        box=(first // PADDED_ELEMENTS, *others),
    )  # fmt: skip
    scale = np.array([PADDED_ELEMENTS] + [1] * len(others))
    offsets, inside = _offsets(grouped, corner // scale, 1)
    starts = local[:1] if _one(local) else local
    places = swizzled(starts[:, None] + np.arange(0, tensor.box_bytes, WIDEST), tensor.swizzle)
    return Region(
        threads=threads, unit=4, element=4, inside=np.repeat(inside, len(words), axis=1),
        remote=(tensor.address + offsets[..., None] + words).reshape(len(threads), -1),
        local=(places[..., None] + words).reshape(len(places), -1),
    )  # fmt: skip


def _unit(tensor: TensorMap, corner: Array) -> int:
    """Largest unit that lies as a whole inside or outside the tensor, and within a row of the box."""
    size = tensor.element_bytes
    starts = int(np.gcd.reduce(corner[:, 0])) * size
    return math.gcd(starts, tensor.extents[0] * size, tensor.box[0] * size, WIDEST)
