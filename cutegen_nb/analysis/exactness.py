"""Whether a reference turns integers into integers, so that floating point can be exact on it."""

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
"""Operations that add, multiply, choose or move. One that rounds (a division, an exponential, a mean) may
give integers too, in saturation, and then no kernel can be asked for them bit for bit."""


def integers_stay_integers(graph: Graph) -> bool:
    """Whether every operation of the graph is one that gives integers for integers."""
    return bool(graph.nodes) and all(_short(node.op) in _EXACT for node in graph.nodes)


def _short(op: str) -> str:
    """``mm`` for ``aten.mm.default``."""
    return op.split(".")[1] if op.count(".") else op
