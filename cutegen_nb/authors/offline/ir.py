"""The reference as the offline author sees it: single-output operations, each size known twice.

Every extent is carried at the full and at the scaled size, so that a number made from a shape can be
told from a number the problem's author wrote.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Extent:
    """The size of one dimension at both sizes of the problem."""

    full: int
    """In the file."""
    scaled: int
    """On the simulator."""

    def __mul__(self, other: Extent) -> Extent:
        return Extent(self.full * other.full, self.scaled * other.scaled)

    def divides(self, other: Extent) -> bool:
        """Whether `other` is a multiple at both sizes."""
        return bool(self.full and self.scaled) and not (other.full % self.full or other.scaled % self.scaled)

    def __floordiv__(self, other: Extent) -> Extent:
        return Extent(self.full // other.full, self.scaled // other.scaled)

    @property
    def is_one(self) -> bool:
        """Whether the dimension needs no index."""
        return self.full == 1 and self.scaled == 1


ONE = Extent(1, 1)
Shape = tuple[Extent, ...]


def elements(shape: Sequence[Extent]) -> Extent:
    """Number of elements."""
    return Extent(math.prod(e.full for e in shape), math.prod(e.scaled for e in shape))


@dataclass(frozen=True, slots=True)
class Name:
    """A use of another value."""

    name: str
    """Its name in the program."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number that is the product of extents: what a mean divides by."""

    extent: Extent
    """Its value at both sizes."""


Operand = object
"""A Name, a Count, a number, a word, None, or a tuple of numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operation with one output."""

    name: str
    """Unique in the program."""
    op: str
    """ATen's short name (``relu``), ``reduce:HOW``, ``view``, ``permute``, ``expand`` or ``host_view``."""
    args: tuple[Operand, ...]
    """Operands."""
    kwargs: tuple[tuple[str, Operand], ...] = ()
    """Keyword operands."""
    shape: Shape
    """Of the output."""
    dtype: str
    """Of the output."""
    dims: tuple[int, ...] = ()
    """Of a reduction: the dimensions reduced. Of a permute: the order."""

    @property
    def reduction(self) -> str:
        """``sum``, ``max`` … for a reduction, otherwise empty."""
        return self.op.removeprefix("reduce:") if self.op.startswith("reduce:") else ""

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of the values it uses."""
        values = (*self.args, *(value for _, value in self.kwargs))
        return tuple(value.name for value in values if isinstance(value, Name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A tensor in memory that kernels read: an input, a parameter or a buffer of the module."""

    name: str
    """Name in the program and in ``forward``."""
    shape: Shape
    """Extents."""
    dtype: str
    """As torch spells it."""
    text: str
    """How ``forward`` gets at it: ``x`` or ``self.bn.weight``."""


class Values:
    """What is computed with: tensors in memory and results of operations, by one set of names."""

    __slots__ = ()
    buffers: dict[str, Buffer]
    ops: dict[str, Op]

    def shape(self, name: str) -> Shape:
        """Extents of a value."""
        return self.buffers[name].shape if name in self.buffers else self.ops[name].shape

    def dtype(self, name: str) -> str:
        """The dtype of a value."""
        return self.buffers[name].dtype if name in self.buffers else self.ops[name].dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class Program(Values):
    """The reference in an order in which it may be computed."""

    buffers: dict[str, Buffer]
    """Inputs first, in the order ``forward`` takes them, then parameters."""
    ops: dict[str, Op]
    """By name, in order; only those that an output needs."""
    outputs: tuple[str, ...]
    """Names of what the reference returns."""
    arguments: tuple[str, ...]
    """Names of ``forward``'s arguments, in order; those that are no buffer are unused numbers."""
