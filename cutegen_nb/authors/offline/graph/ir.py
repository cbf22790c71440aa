"""Intermediate representation of the offline author: single-output operations, extents at two sizes.

Every extent holds its value at the full and at the scaled size, so that a number made from a shape can be
told from a number that the problem's author wrote.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Extent:
    """Extent of one dimension, at both sizes of the problem."""

    full: int
    """Value at the size in the file."""
    scaled: int
    """Value at the simulator's size."""

    def __mul__(self, other: Extent) -> Extent:
        return Extent(self.full * other.full, self.scaled * other.scaled)

    def __add__(self, other: Extent) -> Extent:
        return Extent(self.full + other.full, self.scaled + other.scaled)

    def divides(self, other: Extent) -> bool:
        """Return whether `other` is a multiple of this extent at both sizes."""
        return bool(self.full and self.scaled) and not (other.full % self.full or other.scaled % self.scaled)

    def __floordiv__(self, other: Extent) -> Extent:
        return Extent(self.full // other.full, self.scaled // other.scaled)

    @property
    def is_one(self) -> bool:
        """True if the dimension needs no index."""
        return self.full == 1 and self.scaled == 1


ONE = Extent(1, 1)
"""Extent of a broadcast or reduced dimension."""
Shape = tuple[Extent, ...]
"""Extents of a value, one for each dimension."""


def elements(shape: Sequence[Extent]) -> Extent:
    """Number of elements of a shape."""
    return Extent(math.prod(e.full for e in shape), math.prod(e.scaled for e in shape))


@dataclass(frozen=True, slots=True)
class Name:
    """Reference to another value."""

    name: str
    """Name of the value in the program."""


@dataclass(frozen=True, slots=True)
class Count:
    """Number that is a product of extents, such as the divisor of a mean."""

    extent: Extent
    """Value at both sizes."""


Operand = object
"""Operand of an operation: a Name, a Count, a number, a word, None, or a tuple of numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCall:
    """Call in ``forward`` that makes a tensor: of a generated function, or of PyTorch's."""

    text: str
    """Expression with ``{}`` for each tensor operand, and for each extent behind them:
    ``conv(self.launch, {}, {})``."""
    function: str = ""
    """Name of the generated function; empty for one of PyTorch's."""
    extents: tuple[Extent, ...] = ()
    """Numbers that the call takes besides the tensors."""
    results: int = 1
    """Number of tensors that the call returns; an operation ``result`` stands for each after the first."""
    in_place: bool = False
    """True if the generated function takes tensors of any strides, as views lie in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operation with one output."""

    name: str
    """Name, unique in the program."""
    op: str
    """ATen's short name (``relu``), ``reduce:HOW``, ``view``, ``permute``, ``expand``, ``host_view``,
    ``spread`` for a view that a function takes, ``call`` for a tensor that a call in ``forward`` makes,
    ``result`` for a further tensor that the call of its operand returns,
    ``arange`` for such a tensor of positions, or ``cat`` for a tensor whose operands, each a ``part``, are
    stored side by side along a dimension."""
    args: tuple[Operand, ...]
    """Positional operands."""
    kwargs: tuple[tuple[str, Operand], ...] = ()
    """Keyword operands."""
    shape: Shape
    """Extents of the output."""
    dtype: str
    """dtype of the output."""
    dims: tuple[int, ...] = ()
    """Reduced dimensions of a reduction; order of a permute; dimension along which parts are joined."""
    call: HostCall | None = None
    """Call of ``forward`` that makes the value; None for any other operation."""

    @property
    def reduction(self) -> str:
        """Kind of reduction, ``sum``, ``max`` …; empty for any other operation."""
        return self.op.removeprefix("reduce:") if self.op.startswith("reduce:") else ""

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of the values that the operation uses."""
        values = (*self.args, *(value for _, value in self.kwargs))
        return tuple(value.name for value in values if isinstance(value, Name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A tensor in memory that kernels read: an input, a parameter or a buffer."""

    name: str
    """Name in the program and in ``forward``."""
    shape: Shape
    """Extents of the tensor."""
    dtype: str
    """torch's dtype name without the prefix."""
    text: str
    """Expression for the tensor in ``forward``: ``x`` or ``self.bn.weight``."""


class Values:
    """Tensors in memory and results of operations, in one namespace."""

    __slots__ = ()
    buffers: dict[str, Buffer]
    ops: dict[str, Op]

    def shape(self, name: str) -> Shape:
        """Extents of a value."""
        return self.buffers[name].shape if name in self.buffers else self.ops[name].shape

    def dtype(self, name: str) -> str:
        """Element type of a value."""
        return self.buffers[name].dtype if name in self.buffers else self.ops[name].dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphProgram(Values):
    """Reference as operations in topological order."""

    buffers: dict[str, Buffer]
    """Tensors in memory: inputs in the order of ``forward``'s arguments, then parameters."""
    ops: dict[str, Op]
    """Operations by name, in order; only those that an output depends on."""
    outputs: tuple[str, ...]
    """Names of the returned values."""
    arguments: tuple[str, ...]
    """Names of ``forward``'s arguments, in order; names without a buffer are unused numbers."""
