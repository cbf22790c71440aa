"""Search for scans in a traced graph, with the nodes around them that one kernel can take along."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from cutegen_nb.analysis.problem.workload import operands
from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.authors.offline.operators.operator import OperatorMatch
from cutegen_nb.core.graph import Argument, Graph, Node, Ref

_KINDS = {
    "cumsum": "sum",
    "cumprod": "product",
    "logcumsumexp": "logsumexp",
    "cummax": "maximum",
    "cummin": "minimum",
}
_IDENTITIES = {"sum": 0, "product": 1, "logsumexp": -math.inf, "maximum": -math.inf, "minimum": math.inf}
"""Value that changes no result, by kind."""
_FLOATS = frozenset({"float32", "float16", "bfloat16"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanAttributes:
    """Kind of scan."""

    kind: str
    """``sum``, ``product``, ``logsumexp``, ``maximum`` or ``minimum``."""
    dim: int
    """Scanned dimension, from 0."""
    reverse: bool = False
    """True if the scan runs from the last element to the first."""
    exclusive: bool = False
    """True if an element's own value is not part of its sum."""
    masked: bool = False
    """True if the second operand is a mask that multiplies the first."""

    @property
    def identity(self) -> int | float:
        """Value that changes no result."""
        return _IDENTITIES[self.kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Scan with what was found around it so far."""

    nodes: frozenset[str]
    source: Ref
    result: Ref
    attributes: ScanAttributes
    mask: Ref | None = None


def scans_of(graph: Graph) -> tuple[OperatorMatch, ...]:
    """Find every scan of floats in a graph."""
    uses = _uses(graph)
    matches = []
    for node in graph.nodes:
        found = _scan(graph, node)
        if found is not None:
            for widened in (_exclusive, _reversed, _masked):
                found = widened(graph, uses, found) or found
            operands = (found.source,) if found.mask is None else (found.source, found.mask)
            matches.append(
                OperatorMatch(
                    nodes=found.nodes, result=found.result, operands=operands, attributes=found.attributes
                )
            )
    return tuple(matches)


def _uses(graph: Graph) -> dict[str, list[str]]:
    """Names of the nodes that read each value; an output of the graph is read by ``""``."""
    uses: dict[str, list[str]] = {}
    for node in graph.nodes:
        for ref in operands(node):
            uses.setdefault(ref.name, []).append(node.name)
    for ref in graph.outputs:
        uses.setdefault(ref.name, []).append("")
    return uses


def _scan(graph: Graph, node: Node) -> _Found | None:
    kind = _KINDS.get(short_name(node.op))
    if kind is None or not isinstance(node.args[0], Ref) or not isinstance(node.args[1], int):
        return None
    used = (*(ref for user in graph.nodes for ref in operands(user)), *graph.outputs)
    if any(ref.name == node.name and ref.index for ref in used):
        return None  # the places of the extremes are needed too
    source, shape = graph.spec(node.args[0]), node.outputs[0].shape
    if not shape or not {source.dtype, node.outputs[0].dtype} <= _FLOATS:
        return None
    return _Found(
        nodes=frozenset({node.name}),
        source=node.args[0],
        result=Ref(node.name),
        attributes=ScanAttributes(kind=kind, dim=node.args[1] % len(shape)),
    )


def _only_user(graph: Graph, uses: dict[str, list[str]], ref: Ref, op: str) -> Node | None:
    """Return the node that alone reads a value, if it is of this kind."""
    names = uses.get(ref.name, [])
    node = graph.node(names[0]) if len(names) == 1 else None
    return node if node is not None and short_name(node.op) == op else None


def _only_source(graph: Graph, uses: dict[str, list[str]], ref: Ref, op: str) -> Node | None:
    """Return the node that makes a value for one reader alone, if it is of this kind."""
    node = graph.node(ref.name)
    return node if node is not None and short_name(node.op) == op and len(uses[ref.name]) == 1 else None


def _reversed(graph: Graph, uses: dict[str, list[str]], found: _Found) -> _Found | None:
    """Take the flips before and after along."""
    before = _only_source(graph, uses, found.source, "flip")
    after = _only_user(graph, uses, found.result, "flip")
    if before is None or after is None or not isinstance(before.args[0], Ref):
        return None
    rank, dim = len(graph.spec(found.result).shape), found.attributes.dim
    if any(_dims(node.args[1], rank) != (dim,) for node in (before, after)):
        return None
    return replace(
        found,
        nodes=found.nodes | {before.name, after.name},
        source=before.args[0],
        result=Ref(after.name),
        attributes=replace(found.attributes, reverse=True),
    )


def _dims(value: Argument, rank: int) -> tuple[int, ...]:
    items = value if isinstance(value, tuple) else (value,)
    return tuple(item % rank for item in items if isinstance(item, int))


def _exclusive(graph: Graph, uses: dict[str, list[str]], found: _Found) -> _Found | None:
    """Take the slice before that drops the last element, and the joint after with a first one, along."""
    before = _only_source(graph, uses, found.source, "slice")
    after = _only_user(graph, uses, found.result, "cat")
    if before is None or after is None or not isinstance(before.args[0], Ref):
        return None
    dim, source = found.attributes.dim, graph.spec(before.args[0])
    parts, (rank, length) = after.args[0], (len(source.shape), source.shape[dim])
    drops = (*before.args[1:], 0, length, 1)[:3] if len(before.args) < 4 else before.args[1:4]  # noqa: PLR2004 - dim, start, end
    along = after.args[1] if len(after.args) > 1 else 0
    if drops != (dim, 0, length - 1) or not isinstance(along, int) or along % rank != dim:
        return None
    if not isinstance(parts, tuple) or len(parts) != 2 or parts[1] != found.result:  # noqa: PLR2004 - a pair
        return None
    first = graph.node(parts[0].name) if isinstance(parts[0], Ref) else None
    if first is None or not _fills(first, uses, found.attributes.identity):
        return None
    if first.outputs[0].shape != (*source.shape[:dim], 1, *source.shape[dim + 1 :]):
        return None
    return replace(
        found,
        nodes=found.nodes | {before.name, after.name, first.name},
        source=before.args[0],
        result=Ref(after.name),
        attributes=replace(found.attributes, exclusive=True),
    )


def _fills(node: Node, uses: dict[str, list[str]], value: float) -> bool:
    """Return whether a node makes a tensor of `value` for one reader alone."""
    made = {"zeros": 0, "ones": 1}.get(short_name(node.op), node.args[-1] if len(node.args) > 1 else None)
    known = short_name(node.op) in ("full", "zeros", "ones")
    return known and len(uses[node.name]) == 1 and isinstance(made, int | float) and made == value


def _masked(graph: Graph, uses: dict[str, list[str]], found: _Found) -> _Found | None:
    """Take a multiplication by a mask before along."""
    node = _only_source(graph, uses, found.source, "mul")
    if node is None:
        return None
    for values, mask in (node.args[:2], node.args[1::-1]):
        if isinstance(values, Ref) and isinstance(mask, Ref) and graph.spec(mask).dtype == "bool":
            same = graph.spec(values).shape == graph.spec(mask).shape == node.outputs[0].shape
            if same and graph.spec(values).dtype in _FLOATS:
                return replace(
                    found,
                    nodes=found.nodes | {node.name},
                    source=values,
                    mask=mask,
                    attributes=replace(found.attributes, masked=True),
                )
    return None
