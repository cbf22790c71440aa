"""Integer-exact references: operations for which floating point gives exact results on integer inputs."""

from __future__ import annotations

from cutegen_nb.core.graph import Graph

_EXACT = frozenset({
    "abs", "add", "addmm", "alias", "amax", "amin", "argmax", "argmin", "baddbmm", "bmm", "cat", "clamp",
    "clone", "constant_pad_nd", "convolution", "cumsum", "diagonal", "dot", "expand", "flip", "gather", "ge",
    "gt", "index_select", "le", "lt", "max", "max_pool2d_with_indices", "max_pool3d_with_indices", "maximum",
    "min", "minimum", "mm", "mul", "mv", "neg", "permute", "relu", "reshape", "select", "slice", "square",
    "squeeze", "sub", "sum", "t", "transpose", "tril", "triu", "unsqueeze", "view", "where", "zeros_like",
    "_unsafe_view",
})  # fmt: skip
"""Operations that add, multiply, select or move, and so give integers for integers. Operations that round (a
division, an exponential, a mean) are left out. They may give integers in saturation, but no kernel can be
expected to match those bit for bit."""


def integers_stay_integers(graph: Graph) -> bool:
    """Return whether every operation of the graph gives integers for integers; False for an empty graph."""
    return bool(graph.nodes) and all(_short(node.op) in _EXACT for node in graph.nodes)


def _short(op: str) -> str:
    """Return the operation's base name: ``mm`` for ``aten.mm.default``."""
    return op.split(".")[1] if op.count(".") else op
