"""Interface of an operator's kernel: the part of a graph that it computes, and its text in a module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cutegen_nb.authors.offline.graph.ir import Shape
from cutegen_nb.core.graph import Graph, Ref
from cutegen_nb.core.strategy import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorMatch:
    """Nodes of a graph that one operator's kernel computes together."""

    nodes: frozenset[str]
    """Names of the nodes. Of their values only `result` and `more` are used outside."""
    result: Ref
    """Value that the kernel computes."""
    more: tuple[Ref, ...] = ()
    """Further outputs of the node of `result` that the function returns behind it."""
    operands: tuple[Ref, ...]
    """Tensors that the kernel reads, in the writer's own order."""
    attributes: object
    """Frozen value of the writer's own: stride and padding, the dimension of a scan, flags."""
    name: str = ""
    """Name for the generated function; empty for that of the operation that makes `result`."""
    flops: int | None = None
    """FLOPs, of nodes that the author made itself; None for those that the trace's operations have."""
    steps: int = 1
    """Number of parts of the work that wait for one another."""
    in_place: bool = False
    """True if the function takes operands of any strides, as views lie in memory; else they are dense."""
    shared: bool = False
    """True if matches of equal attributes share one function, which takes no element-wise work along."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandTensor:
    """Tensor argument of a generated function; row-major and dense unless the call is `in_place`."""

    name: str
    """Name of the parameter, unique in the call."""
    shape: Shape
    """Extents, at both sizes of the problem."""
    dtype: str
    """torch's dtype name without the prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTail:
    """Element-wise work fused into the kernel, applied to each output element before it is stored."""

    extras: tuple[OperandTensor, ...]
    """Further tensors, of the output's rank. The host passes them expanded to the output's shape (stride 0
    where they are broadcast, though `shape` has 1 there); the kernel reads each at the output's coordinate
    into a float32 register named ``NAME_value``."""
    lines: tuple[str, ...]
    """Statements in CuTe DSL. They read ``acc``, the float32 value of the operator, and the registers."""
    value: str
    """Expression of the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCall:
    """Request for the kernel of one match."""

    name: str
    """Name of the generated function, unique in the module: ``conv``, ``conv_2``. Every name that the text
    defines at module level begins with it, constants in upper case."""
    operands: tuple[OperandTensor, ...]
    """Tensors in the match's order."""
    attributes: object
    """Attributes at the full size."""
    scaled_attributes: object
    """Attributes at the simulator's size; equal unless a number depends on the size."""
    shape: Shape
    """Extents of the output."""
    dtype: str
    """dtype of the output."""
    in_place: bool = False
    """True if the operands may have any strides."""
    tail: OperatorTail | None = None
    """Element-wise work on each output element; its dtype is that of the output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorText:
    """Text of one operator in the generated module."""

    source: str
    """Kernels, their ``@cute.jit`` launchers, and ``def NAME(launch, OPERANDS..., EXTRAS...)``.

    The function allocates and returns the output, or a tuple of several where the match has `more`. It is
    right at every size, so it reads extents from the tensors' shapes. ``launch(host, tensors, *numbers)``
    compiles `host` once for the tensors' shapes, strides and dtypes and the numbers, and launches it with the
    tensors, the numbers as constants, and the stream.
    """
    constants: dict[str, str]
    """Module-level constants by name, with their text."""
    imports: tuple[str, ...] = ()
    """Import lines besides those of every kernel file."""


class OperatorWriter(Protocol):
    """Writer of one family of operators; its methods are pure functions."""

    def matches(self, graph: Graph) -> tuple[OperatorMatch, ...]:
        """Find the operators of this family in a graph at one size, in order.

        Of several matches of a node, the first that the other size has too, with equal operands, is used.
        """
        ...

    def menu(self, call: OperatorCall) -> tuple[Strategy, ...]:
        """List the strategies that may follow the simplest kernel, in the order to try them.

        Raises Declined, with one sentence, where no kernel can be written.
        """
        ...

    def write(self, call: OperatorCall, applied: tuple[str, ...]) -> OperatorText:
        """Write the kernel with the strategies in `applied`; those of other operators are passed over."""
        ...
