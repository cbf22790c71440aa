"""Share of the work that a causal mask leaves of the products around it."""

from __future__ import annotations

import math

from cutegen_nb.core.graph import Argument, Graph, Node, Ref

_PRODUCT = "bmm"
_PASSED = frozenset({"view", "_unsafe_view", "reshape", "clone", "expand", "_to_copy", "mul", "div", "add"})
"""Operations between the scores' product and the mask: views, a conversion, a factor, an added mask."""


def causal_shares(graph: Graph) -> dict[str, float]:
    """Return the share of the work of each product of a causal attention that counts, by the product's name.

    Where ``where(tril(ones), scores, -inf)`` stands, the scores above the diagonal are not needed, and their
    weights are 0 in the product with the values. Of L queries and as many keys (L + 1) / 2L are left.
    """
    shares: dict[str, float] = {}
    for node in graph.nodes:
        if causal_mask(graph, node) is not None:
            rows, columns = node.outputs[0].shape[-2:]
            diagonal = min(rows, columns)  # below it, rows see all columns
            kept = (diagonal * (diagonal + 1) / 2 + (rows - diagonal) * columns) / (rows * columns)
            for product in (_scores(graph, node.args[1]), _outputs(graph, node.name)):
                if product is not None:
                    shares[product] = kept
    return shares


def causal_mask(graph: Graph, node: Node) -> tuple[Node, Node] | None:
    """Return the nodes ``tril`` and ``full`` of ``where(tril(full(True)), scores, -inf)``; else None."""
    if not node.op.startswith("aten.where.") or node.args[2] != -math.inf:
        return None
    triangle = _node(graph, node.args[0])
    if triangle is None or not triangle.op.startswith("aten.tril.") or len(triangle.args) > 1:
        return None
    ones = _node(graph, triangle.args[0])
    is_whole = ones is not None and ones.op.startswith("aten.full.") and ones.args[1] is True
    return (triangle, ones) if ones is not None and is_whole else None


def _scores(graph: Graph, value: Argument) -> str | None:
    """Return the product that makes the scores."""
    node = _node(graph, value)
    while node is not None and _short(node) in _PASSED:
        node = _node(graph, node.args[0])
    return node.name if node is not None and _short(node) == _PRODUCT else None


def _outputs(graph: Graph, masked: str) -> str | None:
    """Return the product of the weights, which come from the masked scores, with the values."""
    reached = {masked}
    for node in graph.nodes:
        read = [argument.name for argument in node.args if isinstance(argument, Ref)]
        if reached & set(read):
            if _short(node) == _PRODUCT:
                return node.name if read[0] in reached else None
            reached.add(node.name)
    return None


def _node(graph: Graph, value: Argument) -> Node | None:
    return graph.node(value.name) if isinstance(value, Ref) else None


def _short(node: Node) -> str:
    return node.op.split(".")[1]
