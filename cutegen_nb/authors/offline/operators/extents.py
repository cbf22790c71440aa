"""Extents of an operator's result as expressions of its operands' shapes, before it is computed."""

from __future__ import annotations

from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.authors.offline.matmul.graph import read_product
from cutegen_nb.authors.offline.operators.gathers.attributes import Gather
from cutegen_nb.authors.offline.operators.gathers.settled import output_extents, settled
from cutegen_nb.authors.offline.operators.operator import OperatorMatch
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Graph, Node

_CONVOLUTION = "convolution"
_POOLS = {
    **{f"max_pool{rank}d_with_indices": rank for rank in (2, 3)},
    **{f"avg_pool{rank}d": rank for rank in (1, 2, 3)},
}
"""Number of pooled dimensions by the short name of a pooling."""
Templates = tuple[str, ...]
"""Expressions with ``{0}`` for the operator's first operand, ``{1}`` for its second."""


def extents_of(graph: Graph, match: OperatorMatch, scaled: OperatorMatch) -> Templates | None:
    """Expressions for the extents of a match's result; None where there is no rule."""
    node = graph.node(match.result.name)
    if isinstance(match.attributes, Graph) and isinstance(scaled.attributes, Graph):
        return _multiplied(match.attributes, scaled.attributes)
    if isinstance(match.attributes, Gather):
        return _gathered(match.attributes, scaled.attributes)
    if node is None or match.nodes != {node.name}:
        return None
    op, rank = short_name(node.op), len(graph.spec(match.result).shape)
    if op == _CONVOLUTION:
        return _convolved(node, rank - 2)
    if op in _POOLS:
        return _pooled(node, rank, _POOLS[op], dilated=op.startswith("max"))
    if op == "grid_sampler_2d":
        return "{0}.shape[0]", "{0}.shape[1]", "{1}.shape[1]", "{1}.shape[2]"
    same = graph.spec(match.operands[0]).shape == graph.spec(match.result).shape
    return tuple(f"{{0}}.shape[{dim}]" for dim in range(rank)) if same else None


def _multiplied(full: Graph, scaled: Graph) -> Templates | None:
    names = {value.name: f"{{{at}}}" for at, value in enumerate(full.inputs)}
    try:
        return tuple(size.text for size in read_product(full, scaled, names).output_sizes)
    except Declined:
        return None


def _gathered(full: object, scaled: object) -> Templates | None:
    try:
        return output_extents(settled(full, scaled))
    except Declined:
        return None


def _convolved(node: Node, rank: int) -> Templates:
    """Extents of a convolution, plain or transposed, from the operands in ATen's order."""
    stride, padding, dilation, transposed, more, groups = node.args[3:]
    places = []
    for dim in range(rank):
        s, p, d, o = (_at(values, dim) for values in (stride, padding, dilation, more))
        x, k = f"{{0}}.shape[{dim + 2}]", f"{{1}}.shape[{dim + 2}]"
        if transposed:
            places.append(_plus(f"({x} - 1){_times(s)} + ({k} - 1){_times(d)}", 1 + o - 2 * p))
        else:
            places.append(f"({_plus(f'{x} - ({k} - 1){_times(d)}', 2 * p - 1)}) // {s} + 1")
    channels = f"{{1}}.shape[1]{_times(groups)}" if transposed else "{1}.shape[0]"
    return "{0}.shape[0]", channels, *places


def _pooled(node: Node, rank: int, pooled: int, *, dilated: bool) -> Templates | None:
    """Extents of a pooling with the operands (x, window, stride, padding, dilation of a maximum, ceil …)."""
    given = [*node.args[1:], *([None] * 5)]
    window, stride, padding = given[0], given[1] or given[0], given[2] or 0
    dilation, ceil = (given[3] or 1, given[4]) if dilated else (1, given[3])
    if ceil or len(node.kwargs) > 0:
        return None
    places = [f"{{0}}.shape[{dim}]" for dim in range(rank - pooled)]
    for dim in range(pooled):
        k, s, p, d = (_at(values, dim) for values in (window, stride, padding, dilation))
        x = f"{{0}}.shape[{rank - pooled + dim}]"
        places.append(f"({_plus(x, 2 * p - d * (k - 1) - 1)}) // {s} + 1")
    return tuple(places)


def _plus(text: str, number: int) -> str:
    return f"{text} {'+' if number > 0 else '-'} {abs(number)}" if number else text


def _times(number: object) -> str:
    return "" if number == 1 else f" * {number}"


def _at(values: object, dim: int) -> int:
    """One number of an operand that is a number for each dimension, or one for all of them."""
    number = values if not isinstance(values, tuple) else values[dim if len(values) > 1 else 0]
    assert isinstance(number, int)
    return number
