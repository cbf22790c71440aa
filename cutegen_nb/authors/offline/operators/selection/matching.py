"""Selections of the largest or smallest elements in a traced graph."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.analysis.problem.workload import operands
from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.authors.offline.operators.operator import OperatorMatch
from cutegen_nb.core.graph import Graph, Node, Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Selection of some elements of each row."""

    count: int
    """Number of elements selected of a row."""
    length: int
    """Number of elements of a row."""
    dim: int
    """Dimension of the rows, from 0."""
    last: bool
    """True if that is the last dimension."""
    largest: bool
    """True if the largest elements are selected, else the smallest."""
    values: bool
    """True if the elements are used."""
    places: bool
    """True if their positions in the row are used."""


def selections_in(graph: Graph) -> tuple[OperatorMatch, ...]:
    """Find the calls of ``topk`` in a graph, in order."""
    found = (_match(graph, node) for node in graph.nodes if short_name(node.op) == "topk")
    return tuple(match for match in found if match is not None)


def _match(graph: Graph, node: Node) -> OperatorMatch | None:
    given = dict(zip(("self", "k", "dim", "largest", "sorted"), node.args, strict=False))
    source, dim = given["self"], given.get("dim", -1)
    shape = node.outputs[0].shape
    if not isinstance(source, Ref) or not isinstance(dim, int) or not shape:
        return None
    used = {ref for user in graph.nodes for ref in operands(user)} | set(graph.outputs)
    # The values come first, then the positions; nothing is stored that nothing reads.
    first, *more = [ref for ref in (Ref(node.name), Ref(node.name, 1)) if ref in used] or [Ref(node.name)]
    dim %= len(shape)
    return OperatorMatch(
        nodes=frozenset({node.name}),
        result=first,
        more=tuple(more),
        operands=(source,),
        attributes=Selection(
            count=shape[dim],
            length=graph.spec(source).shape[dim],
            dim=dim,
            last=dim == len(shape) - 1,
            largest=bool(given.get("largest", True)),
            values=first.index == 0,
            places=first.index == 1 or bool(more),
        ),
        name="top_k",
    )
