"""Convolution nodes of a graph, and their attributes."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.authors.offline.operators.operator import OperatorCall, OperatorMatch
from cutegen_nb.core.graph import Graph, Node, Ref

_OPERATOR = "aten.convolution.default"
_DTYPES = ("float32", "float16", "bfloat16")
_LEAST_RANK, _MOST_RANK = 3, 5
"""Ranks of the input: batch, channels, and one to three spatial dimensions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """Numbers of a convolution beside its tensors; one entry of a tuple for each spatial dimension."""

    stride: tuple[int, ...]
    """Step between neighbouring outputs in the input; of a transposed convolution, the reverse."""
    padding: tuple[int, ...]
    """Zeros before the first element and behind the last; of a transposed one, outputs cut off."""
    dilation: tuple[int, ...]
    """Step between neighbouring taps."""
    output_padding: tuple[int, ...]
    """Outputs that a transposed convolution has beyond those that its inputs reach."""
    transposed: bool
    """True for the gradient of a convolution as a convolution of its own, which spreads out its input."""
    groups: int
    """Number of independent convolutions, on channels of their own."""


def convolutions(graph: Graph) -> tuple[OperatorMatch, ...]:
    """Find the convolutions of a graph, in order; depthwise ones are no products and are left out."""
    found = (_match(graph, node) for node in graph.nodes if node.op == _OPERATOR)
    return tuple(match for match in found if match is not None)


def _match(graph: Graph, node: Node) -> OperatorMatch | None:
    operands = tuple(ref for ref in node.args[:3] if isinstance(ref, Ref))
    specs = [graph.spec(ref) for ref in operands]
    rank = len(specs[0].shape)
    one_dtype = {spec.dtype for spec in specs} == {node.outputs[0].dtype}
    if not one_dtype or specs[0].dtype not in _DTYPES or not _LEAST_RANK <= rank <= _MOST_RANK:
        return None
    attributes = numbers_of(node)
    groups, channels = attributes.groups, specs[0].shape[1]
    if not attributes.transposed and groups > 1 and groups == channels == node.outputs[0].shape[1]:
        return None
    return OperatorMatch(
        nodes=frozenset({node.name}), result=Ref(node.name), operands=operands, attributes=attributes
    )


def numbers_of(node: Node) -> Convolution:
    """Read the numbers of an ``aten.convolution``."""
    spatial = len(node.outputs[0].shape) - 2
    stride, padding, dilation, transposed, more, groups = node.args[3:]
    assert isinstance(groups, int)
    return Convolution(
        stride=_numbers(stride, spatial),
        padding=_numbers(padding, spatial),
        dilation=_numbers(dilation, spatial),
        output_padding=_numbers(more, spatial),
        transposed=bool(transposed),
        groups=groups,
    )


def _numbers(value: object, count: int) -> tuple[int, ...]:
    """One number for each spatial dimension; ATen lets a single one stand for all."""
    assert isinstance(value, tuple)
    numbers = tuple(int(number) for number in value)
    return numbers * count if len(numbers) == 1 else numbers


def attributes_of(call: OperatorCall) -> Convolution:
    """Attributes of a call that this family matched."""
    assert isinstance(call.attributes, Convolution)
    return call.attributes


def has_bias(call: OperatorCall) -> bool:
    """Return whether the convolution adds a number to each output channel."""
    return len(call.operands) > 2  # noqa: PLR2004 - x and weight
