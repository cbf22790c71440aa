"""Sizes of tensors as products of the sizes of the reference's inputs, so that text can be made of them.

A number in the trace (``view(16384, 2048)``) holds at one size of the problem only. Every dimension is
therefore carried as a product of input dimensions, each with its text (``A.shape[0]``), and a view's
numbers are matched against these products at the full and at the scaled size together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_nb.authors.offline.ir import ONE, Extent, elements
from cutegen_nb.core.errors import Declined


@dataclass(frozen=True, slots=True)
class Factor:
    """One dimension of an input or parameter."""

    text: str
    """How ``forward`` reads it: ``A.shape[0]``."""
    extent: Extent
    """Its value at both sizes."""


@dataclass(frozen=True, slots=True)
class Size:
    """One dimension of any tensor: the product of its factors; no factor means 1."""

    factors: tuple[Factor, ...] = ()
    """None of them is 1 at both sizes."""

    @property
    def extent(self) -> Extent:
        """The product at both sizes."""
        return elements([factor.extent for factor in self.factors])

    @property
    def text(self) -> str:
        """As ``forward`` writes it."""
        return " * ".join(factor.text for factor in self.factors) or "1"


Sizes = tuple[Size, ...]


def sizes_of(text: str, shape: Sequence[Extent]) -> Sizes:
    """The dimensions of the input written `text`."""
    return tuple(
        Size() if extent.is_one else Size((Factor(f"{text}.shape[{at}]", extent),))
        for at, extent in enumerate(shape)
    )


def regrouped(sizes: Sizes, shape: Sequence[Extent]) -> Sizes:
    """The dimensions after a view of `sizes` as `shape`.

    Raises Declined when a dimension is split at a number that is no input's dimension: the number
    could not be known at another size.
    """
    factors = [factor for size in sizes for factor in size.factors]
    result = []
    for extent in shape:
        taken: list[Factor] = []
        while elements([factor.extent for factor in taken]) != extent:
            if not factors:
                raise Declined(
                    f"the offline author cannot tell where the size {extent.full} of a reshape around the "
                    "product comes from"
                )
            taken.append(factors.pop(0))
        result.append(Size(tuple(taken)))
    return tuple(result)


def broadcast(left: Sizes, right: Sizes) -> Sizes:
    """The dimensions of a point-wise operation on both."""
    rank = max(len(left), len(right))
    left = (Size(),) * (rank - len(left)) + left
    right = (Size(),) * (rank - len(right)) + right
    return tuple(b if a.extent == ONE else a for a, b in zip(left, right, strict=True))


def same(left: Sizes, right: Sizes) -> bool:
    """Whether both have the same extents."""
    return [size.extent for size in left] == [size.extent for size in right]
