"""Identities of algebra: sums and averages of the outputs of products and convolutions."""

from __future__ import annotations

import math
from dataclasses import replace

from cutegen_nb.analysis.problem.workload import base_name, operands
from cutegen_nb.authors.offline.graph.builder import GraphBuilder
from cutegen_nb.authors.offline.operators.convolution.sums import (
    POOLINGS,
    pooled_convolution,
    pooling_arguments,
    summed_convolution,
)
from cutegen_nb.core.graph import Argument, Graph, Node, Ref
from cutegen_nb.core.problem import ProblemFacts, WorkloadClass
from cutegen_nb.core.strategy import Condition, Strategy, lowers

ALGEBRA = "algebra-first"
"""Name of the strategy, the library's for the same idea."""
ALGEBRA_STRATEGY = Strategy(
    name=ALGEBRA,
    statement="Sum before the product: the sum of a product's outputs over its columns is a product with the "
    "sum of the weights' columns, the mean of a convolution over an extent is a product or convolution of "
    "sums, and average pooling of one is a convolution with a larger step, since all steps between the two "
    "are linear. Most of the arithmetic falls away. Rounding differs from the reference's, as in any other "
    "order of the sum.",
    classes=(WorkloadClass.FUSED,),
    requires=(Condition.SHORTCUT,),
    effects=lowers("warp_instructions", "gmem_load_sectors", "latency_ms"),
    source="library",
)
"""Strategy of a graph that sums over what a product or a convolution computed."""


def with_sums_first(facts: ProblemFacts) -> ProblemFacts | None:
    """Return the problem with every such sum taken of factors; None where there is none at either size."""
    full, scaled = (_rewritten(size.graph) for size in (facts.full, facts.scaled))
    if full is facts.full.graph or _operations(full) != _operations(scaled):
        return None
    return replace(facts, full=replace(facts.full, graph=full), scaled=replace(facts.scaled, graph=scaled))


def _rewritten(graph: Graph) -> Graph:
    """Return the graph with sums first, as often as an identity applies; the graph itself if none does."""
    for place, node in enumerate(graph.nodes):
        found = _instead_of(graph, node)
        if found:
            nodes = (*graph.nodes[:place], *found, *graph.nodes[place + 1 :])
            return _rewritten(_living(replace(graph, nodes=nodes)))
    return graph


def _instead_of(graph: Graph, node: Node) -> list[Node]:
    """Return the nodes that replace a sum or pooling, the last by its name; empty if no identity applies."""
    if node.kwargs:
        return []
    name = base_name(node.op)
    if name in {"sum", "mean"}:
        return _Sum(graph, node).nodes()
    if name in POOLINGS:
        return pooled_convolution(graph, node) or _Sum(graph, node).nodes()
    return []


def _operations(graph: Graph) -> list[tuple[str, str]]:
    """Names and operations of the nodes; at a small size an edge may be missing that the full size has."""
    return [(node.name, node.op) for node in graph.nodes]


def _living(graph: Graph) -> Graph:
    """Leave out the nodes that no output needs."""
    needed = {ref.name for ref in graph.outputs}
    for node in reversed(graph.nodes):
        if node.name in needed:
            needed |= {ref.name for ref in operands(node)}
    return replace(graph, nodes=tuple(node for node in graph.nodes if node.name in needed))


class _Sum:
    """Rewriting of one sum or mean, or of an average pooling of rows.

    New values keep the dimensions that are summed, with extent 1; of pooled rows, with the number of windows.
    """

    def __init__(self, graph: Graph, node: Node) -> None:
        self._graph = graph
        self._node = node
        self._build = GraphBuilder(graph)
        self._dims: tuple[int, ...] = ()
        self._shape: tuple[int, ...] = ()
        self._window = 0
        """Elements of a window of pooled rows; 0 for a sum over whole dimensions."""

    def nodes(self) -> list[Node]:
        """Return the nodes that replace the sum, the last by its name; empty if no identity applies."""
        source, dims = (*self._node.args, None)[:2]
        if not isinstance(source, Ref) or not isinstance(dims, tuple):
            return []
        name = base_name(self._node.op)
        if name in POOLINGS:
            source, self._window = self._pooled_rows()
        self._shape = self._graph.spec(source).shape
        self._dims = tuple(sorted(dim % len(self._shape) for dim in dims if isinstance(dim, int)))
        if self._window:
            self._dims = (len(self._shape) - 1,)
        elif name in POOLINGS:
            return []
        found = self._summed(source)
        if found is None:
            return []
        if name != "sum":
            found = self._build.numbers("div", found, map(self._extent, self._dims))
        self._build.view(found, self._node.outputs[0].shape)
        *before, last = self._build.nodes
        return [*before, replace(last, name=self._node.name)]

    def _pooled_rows(self) -> tuple[Ref, int]:
        """Return what a pooling averages, before views that add dimensions, and the width of its windows.

        The width is 0 unless windows lie side by side in the last dimension and fill it.
        """
        source, window, step, padding, _, _, divisor = pooling_arguments(self._node)
        assert isinstance(source, Ref)
        assert isinstance(window, tuple)
        width, last = self._graph.spec(source).shape[-1], window[-1]
        plain = step in {window, ()} and padding in {(0,), (0,) * len(window)} and divisor is None
        rows = len(window) == len(self._node.outputs[0].shape) - 2 and set(window[:-1]) == {1}
        if not plain or not rows or not isinstance(last, int) or last == 1 or width % last:
            return source, 0
        node = self._graph.node(source.name)
        while node is not None and base_name(node.op) == "view" and self._uses(node) == 1:
            before = operands(node)[0]
            if self._graph.spec(before).shape[-1] != width:
                break
            source, node = before, self._graph.node(before.name)
        return source, last

    def _extent(self, dim: int) -> int:
        """Elements that are summed along a dimension."""
        return self._window or self._shape[dim]

    def _total(self, ref: Ref, dims: tuple[int, ...]) -> Ref:
        """Sum over dimensions, or over each window of the last one."""
        if not self._window:
            return self._build.total(ref, dims)
        shape = self._build.spec(ref).shape
        windows = shape[-1] // self._window
        node = self._graph.node(ref.name)
        if node is not None and base_name(node.op) == "permute" and node.args[1] == (1, 0):
            # The weights of a linear layer: what is turned lies in memory as it was before.
            base = operands(node)[0]
            parts = self._build.view(base, (windows, self._window, shape[0]))
            total = self._build.view(self._build.total(parts, (1,)), (windows, shape[0]))
            return self._build.permute(total, (1, 0))
        parts = self._build.view(ref, (*shape[:-1], windows, self._window))
        return self._build.view(self._build.total(parts, (len(shape),)), (*shape[:-1], windows))

    def _summed(self, ref: Ref) -> Ref | None:
        """Return the sum of what a product computed; None where a step is not linear or is used twice.

        Only float32 is summed first: a sum of weights rounded to 16 bits would lose what the reference keeps.
        """
        node = self._graph.node(ref.name)
        if node is None or node.kwargs or self._uses(node) != 1:
            return None
        # A value of another shape is broadcast before it is summed.
        if node.outputs[0].shape != self._shape:
            return None
        if any(self._graph.spec(one).dtype != "float32" for one in operands(node)):
            return None
        name = base_name(node.op)
        if name == "mm":
            return self._of_product(*operands(node))
        if name == "convolution" and not self._window:
            return summed_convolution(self._build, node, self._dims)
        if name in {"mul", "div"}:
            return self._scaled(node, name)
        if name in {"add", "sub"}:
            return self._added(node)
        return None

    def _of_product(self, left: Ref, right: Ref) -> Ref | None:
        if self._dims == (1,):
            right = self._total(right, (1,))
        elif self._dims == (0,):
            left = self._total(left, (0,))
        else:
            return None
        return self._build.product(left, right)

    def _scaled(self, node: Node, name: str) -> Ref | None:
        """Scale the sum, where the factor is the same for all that is summed."""
        first, second = node.args
        for value, factor in ((first, second), (second, first))[: 2 if name == "mul" else 1]:
            found = self._summed(value) if isinstance(value, Ref) and not self._varies(factor) else None
            if found is not None:
                return self._build.step(node.op, (found, factor))
        return None

    def _added(self, node: Node) -> Ref | None:
        """Add the sums of both addends; None where no product is among them."""
        sums = [self._summed(value) if isinstance(value, Ref) else None for value in node.args]
        if not any(sums):
            return None
        found = (total or self._repeated(value) for total, value in zip(sums, node.args, strict=True))
        return self._build.step(node.op, tuple(found))

    def _repeated(self, value: Argument) -> Argument:
        """Sum an addend over the summed dimensions, those along which it is broadcast too."""
        if not isinstance(value, Ref):
            assert isinstance(value, int | float)
            return value * self._count()
        shape = self._build.spec(value).shape
        ahead = len(self._shape) - len(shape)
        own = tuple(dim - ahead for dim in self._dims if dim >= ahead and shape[dim - ahead] > 1)
        total = self._total(value, own) if own else value
        others = (self._extent(dim) for dim in self._dims if dim - ahead not in own)
        return self._build.numbers("mul", total, others)

    def _varies(self, factor: Argument) -> bool:
        if not isinstance(factor, Ref):
            return False
        shape = self._build.spec(factor).shape
        ahead = len(self._shape) - len(shape)
        return any(dim >= ahead and shape[dim - ahead] > 1 for dim in self._dims)

    def _uses(self, node: Node) -> int:
        return sum(ref.name == node.name for other in self._graph.nodes for ref in operands(other)) + sum(
            ref.name == node.name for ref in self._graph.outputs
        )

    def _count(self) -> int:
        return math.prod(map(self._extent, self._dims))
