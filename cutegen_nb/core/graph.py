"""Traced reference as plain values: operations, shapes and dtypes, without torch.

The worker traces a problem (``evaluator/problem/trace.py``); the classification, the FLOP rules and the
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
"""Bytes of an element, by torch's dtype name without the ``torch.`` prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """Shape, dtype and strides of one tensor."""

    shape: tuple[int, ...]
    """Extent of each dimension; empty for a scalar tensor."""
    dtype: str
    """torch's dtype name without the prefix: ``float32``."""
    strides: tuple[int, ...]
    """Strides in elements, one for each dimension."""

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements, each counted once."""
        return self.elements * DTYPE_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Ref:
    """Reference to a value of the graph."""

    name: str
    """Name of an input, a parameter, a constant or a node."""
    index: int = 0
    """Position among the outputs of that node, from 0."""


Argument: TypeAlias = "Ref | int | float | bool | str | tuple[Argument, ...] | None"
"""Operand of an operation: a tensor, a number, a flag, a dtype or mode by name, or a tuple of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """Tensor given to the graph: an input, a parameter or buffer, or a constant."""

    name: str
    """Name, unique in the graph."""
    spec: TensorSpec
    """Shape, dtype and strides."""
    path: str = ""
    """For a parameter: its attribute path in ``Model`` (``linear.weight``). For an input: its position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One ATen operation of the graph."""

    name: str
    """Name, unique in the graph."""
    op: str
    """Operator and overload: ``aten.relu.default``."""
    args: tuple[Argument, ...]
    """Positional operands."""
    kwargs: tuple[tuple[str, Argument], ...]
    """Keyword operands in order."""
    outputs: tuple[TensorSpec, ...]
    """One spec for each returned tensor; in-place operations are traced functionalised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Traced reference at one size."""

    inputs: tuple[Value, ...]
    """Tensor inputs, in the order of ``forward``'s arguments."""
    scalars: tuple[tuple[int, int | float | bool], ...] = ()
    """Inputs that are numbers: (position in ``forward``'s arguments, value)."""
    parameters: tuple[Value, ...]
    """Parameters and buffers that the reference reads."""
    constants: tuple[Value, ...] = ()
    """Tensors made inside ``forward`` from numbers alone, lifted by the trace."""
    nodes: tuple[Node, ...]
    """Operations in topological order."""
    outputs: tuple[Ref, ...]
    """Returned tensors, flattened."""

    def node(self, name: str) -> Node | None:
        """Return the node with this name, or None for an input, a parameter or a constant."""
        return next((node for node in self.nodes if node.name == name), None)

    def spec(self, ref: Ref) -> TensorSpec:
        """Return shape, dtype and strides of the value named by `ref`. Raises KeyError for unknown names."""
        for value in (*self.inputs, *self.parameters, *self.constants):
            if value.name == ref.name:
                return value.spec
        node = self.node(ref.name)
        if node is None:
            raise KeyError(ref.name)
        return node.outputs[ref.index]

    @property
    def output_specs(self) -> tuple[TensorSpec, ...]:
        """Shape, dtype and strides of each output."""
        return tuple(self.spec(ref) for ref in self.outputs)
