"""Identities by which a graph needs fewer operations than its reference makes."""

from __future__ import annotations

from cutegen_nb.analysis.problem.workload import base_name, is_movement, operands
from cutegen_nb.core.graph import Graph, Node

PRODUCTS = frozenset({"mm", "bmm", "addmm", "baddbmm", "convolution"})
"""ATen operations that are linear in each of their operands, and cost the most."""
_SUMS = frozenset({"sum", "mean", "avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d"})
_EXTREMA = frozenset({"amax", "amin", "max", "min", "logsumexp"})
_FIRST_OPERAND = frozenset({"div"})
_EITHER_OPERAND = frozenset({"add", "sub", "rsub", "mul", "neg"})


def shortcut(graph: Graph) -> str:
    """Name the first step of a graph that an identity saves; empty where there is none.

    A sum over the output of a product is a product with summed weights, and two products in a row are one
    with multiplied weights, as long as all between them is linear. A reduction over a dimension of extent 1
    changes nothing.
    """
    linear: set[str] = set()
    for node in graph.nodes:
        name = base_name(node.op)
        read = operands(node)
        from_product = [ref for ref in read if ref.name in linear]
        if from_product and name in _SUMS | PRODUCTS:
            return f"{name} of what a product computed, with nothing but linear steps between them"
        if name in _SUMS | _EXTREMA and read and graph.spec(read[0]).elements == node.outputs[0].elements:
            return f"{name} over a dimension of extent 1"
        if name in PRODUCTS or (from_product and _keeps_linear(node, name, linear)):
            linear.add(node.name)
    return ""


def _keeps_linear(node: Node, name: str, linear: set[str]) -> bool:
    """Return whether a node is linear in the values of `linear` that it reads."""
    read = operands(node)
    if is_movement(node):
        return True
    if name in _FIRST_OPERAND:
        return read[0].name in linear and all(ref.name not in linear for ref in read[1:])
    if name == "mul":
        return sum(ref.name in linear for ref in read) == 1
    return name in _EITHER_OPERAND
