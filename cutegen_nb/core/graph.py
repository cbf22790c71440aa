"""A traced reference as plain values: operations, shapes and dtypes, no torch.

The worker traces a problem (``gpu/trace.py``); the classification, the FLOP rules and the
offline author read the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

DTYPE_BYTES: dict[str, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}
"""Bytes an element, by dtype name as torch spells it without the ``torch.`` prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """Shape, dtype and strides of one tensor."""

    shape: tuple[int, ...]
    """Extent of each dimension; empty for a scalar tensor."""
    dtype: str
    """Name as torch spells it, without the prefix: ``float32``."""
    strides: tuple[int, ...]
    """In elements, one a dimension."""

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes of the elements, each once."""
        return self.elements * DTYPE_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Ref:
    """A use of a value computed elsewhere in the graph."""

    name: str
    """Name of an input, a parameter, a constant or a node."""
    index: int = 0
    """Which output of that node."""


Argument: TypeAlias = "Ref | int | float | bool | str | tuple[Argument, ...] | None"
"""An operand: a tensor, a number, a flag, a dtype or mode by name, or a tuple of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A tensor the graph is given: an input, a parameter or buffer, or a constant."""

    name: str
    """Unique in the graph."""
    spec: TensorSpec
    """Its shape and dtype."""
    path: str = ""
    """For a parameter: its attribute path in ``Model`` (``linear.weight``). For an input: its position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One ATen operation."""

    name: str
    """Unique in the graph."""
    op: str
    """Operator and overload: ``aten.relu.default``."""
    args: tuple[Argument, ...]
    """Positional operands."""
    kwargs: tuple[tuple[str, Argument], ...]
    """Keyword operands in order."""
    outputs: tuple[TensorSpec, ...]
    """One for each tensor it returns; in-place operations are traced functionalised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The reference at one size."""

    inputs: tuple[Value, ...]
    """In the order ``forward`` takes them."""
    scalars: tuple[tuple[int, int | float | bool], ...] = ()
    """Inputs that are numbers: (position in ``forward``'s arguments, value)."""
    parameters: tuple[Value, ...]
    """Parameters and buffers that the reference reads."""
    constants: tuple[Value, ...] = ()
    """Tensors made inside ``forward`` from nothing but numbers, lifted by the trace."""
    nodes: tuple[Node, ...]
    """In an order in which each may be computed."""
    outputs: tuple[Ref, ...]
    """What the reference returns, flattened."""

    def node(self, name: str) -> Node | None:
        """The node of that name, or None for an input, a parameter or a constant."""
        return next((node for node in self.nodes if node.name == name), None)

    def spec(self, ref: Ref) -> TensorSpec:
        """Shape and dtype of what `ref` names. Raises KeyError for a name that is not there."""
        for value in (*self.inputs, *self.parameters, *self.constants):
            if value.name == ref.name:
                return value.spec
        node = self.node(ref.name)
        if node is None:
            raise KeyError(ref.name)
        return node.outputs[ref.index]

    @property
    def output_specs(self) -> tuple[TensorSpec, ...]:
        """Shape and dtype of each output."""
        return tuple(self.spec(ref) for ref in self.outputs)
