"""Symbolic sizes: dimensions as products of the input dimensions, so that code can name them.

A number in the trace (``view(16384, 2048)``) holds at one size of the problem only. Every dimension is
therefore a product of input dimensions, each with its text (``A.shape[0]``). The numbers of a view are
matched against these products at the full and at the scaled size together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_nb.authors.offline.graph.ir import ONE, Extent, elements
from cutegen_nb.core.errors import Declined


@dataclass(frozen=True, slots=True)
class Factor:
    """One dimension of an input or parameter."""

    text: str
    """Expression in ``forward``: ``A.shape[0]``."""
    extent: Extent
    """Value at both sizes."""


@dataclass(frozen=True, slots=True)
class SymbolicSize:
    """One dimension of a tensor: the product of its factors, 1 without factors."""

    factors: tuple[Factor, ...] = ()
    """Factors; none of them is 1 at both sizes."""

    @property
    def extent(self) -> Extent:
        """Product of the factors at both sizes."""
        return elements([factor.extent for factor in self.factors])

    @property
    def text(self) -> str:
        """Expression in ``forward``."""
        return " * ".join(factor.text for factor in self.factors) or "1"


Sizes = tuple[SymbolicSize, ...]
"""Dimensions of a tensor, in torch's order."""


def sizes_of(text: str, shape: Sequence[Extent]) -> Sizes:
    """Dimensions of the input that ``forward`` writes as `text`."""
    return tuple(
        SymbolicSize() if extent.is_one else SymbolicSize((Factor(f"{text}.shape[{at}]", extent),))
        for at, extent in enumerate(shape)
    )


def regrouped(sizes: Sizes, shape: Sequence[Extent]) -> Sizes:
    """Return the dimensions after a view of `sizes` as `shape`.

    Raises Declined when a dimension is split at a number that is no input's dimension: at another size, that
    number is unknown.
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
        result.append(SymbolicSize(tuple(taken)))
    return tuple(result)


def broadcast(left: Sizes, right: Sizes) -> Sizes:
    """Dimensions of a point-wise operation on two operands, by torch's broadcasting rules."""
    rank = max(len(left), len(right))
    left = (SymbolicSize(),) * (rank - len(left)) + left
    right = (SymbolicSize(),) * (rank - len(right)) + right
    return tuple(b if a.extent == ONE else a for a, b in zip(left, right, strict=True))


def same(left: Sizes, right: Sizes) -> bool:
    """Return whether both have the same extents."""
    return [size.extent for size in left] == [size.extent for size in right]
