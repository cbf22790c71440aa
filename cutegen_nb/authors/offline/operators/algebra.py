"""Identity of algebra: the sum of what a product computed is a product of sums."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from cutegen_nb.analysis.problem.workload import base_name, operands
from cutegen_nb.core.graph import Argument, Graph, Node, Ref, TensorSpec
from cutegen_nb.core.problem import ProblemFacts, WorkloadClass
from cutegen_nb.core.strategy import Condition, Strategy, lowers

ALGEBRA = "algebra-first"
"""Name of the strategy, the library's for the same idea."""
ALGEBRA_STRATEGY = Strategy(
    name=ALGEBRA,
    statement="Sum before the product: the sum of a product's outputs over its columns is a product with the "
    "sum of the weights' columns, since all steps between the two are linear. The large product falls away, "
    "and each number is read once. Rounding differs from the reference's, as in any other order of the sum.",
    classes=(WorkloadClass.FUSED,),
    requires=(Condition.SHORTCUT,),
    effects=lowers("warp_instructions", "gmem_load_sectors", "latency_ms"),
    source="library",
)
"""Strategy of a graph that sums over what a product computed."""


def with_sums_first(facts: ProblemFacts) -> ProblemFacts | None:
    """Return the problem with the first such sum taken of a product's factors; None where there is none."""
    full, scaled = _rewritten(facts.full.graph), _rewritten(facts.scaled.graph)
    if full is None or scaled is None:
        return None
    return replace(facts, full=replace(facts.full, graph=full), scaled=replace(facts.scaled, graph=scaled))


def _rewritten(graph: Graph) -> Graph | None:
    for place, node in enumerate(graph.nodes):
        if base_name(node.op) in {"sum", "mean"} and not node.kwargs:
            found = _Sum(graph, node).nodes()
            if found:
                return _living(
                    replace(graph, nodes=(*graph.nodes[:place], *found, *graph.nodes[place + 1 :]))
                )
    return None


def _living(graph: Graph) -> Graph:
    """Leave out the nodes that no output needs."""
    needed = {ref.name for ref in graph.outputs}
    for node in reversed(graph.nodes):
        if node.name in needed:
            needed |= {ref.name for ref in operands(node)}
    return replace(graph, nodes=tuple(node for node in graph.nodes if node.name in needed))


class _Sum:
    """Rewriting of one sum or mean; new values keep the dimensions that are summed, with extent 1."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self._graph = graph
        self._node = node
        self._new: list[Node] = []
        self._dims: tuple[int, ...] = ()
        self._shape: tuple[int, ...] = ()

    def nodes(self) -> list[Node]:
        """Return the nodes that replace the sum, the last by its name; empty if no identity applies."""
        source, dims = (*self._node.args, None)[:2]
        if not isinstance(source, Ref) or not isinstance(dims, tuple):
            return []
        self._shape = self._graph.spec(source).shape
        self._dims = tuple(sorted(dim % len(self._shape) for dim in dims if isinstance(dim, int)))
        found = self._summed(source)
        if found is None:
            return []
        if base_name(self._node.op) == "mean":
            found = self._number("div", found, self._count())
        if self._spec(found).shape != self._node.outputs[0].shape:
            found = self._view(found, self._node.outputs[0].shape)
        *before, last = self._new
        return [*before, replace(last, name=self._node.name)]

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
        return self._product(left, right)

    def _scaled(self, node: Node, name: str) -> Ref | None:
        """Scale the sum, where the factor is the same for all that is summed."""
        first, second = node.args
        for value, factor in ((first, second), (second, first))[: 2 if name == "mul" else 1]:
            found = self._summed(value) if isinstance(value, Ref) and not self._varies(factor) else None
            if found is not None:
                return self._add(node.op, (found, factor))
        return None

    def _added(self, node: Node) -> Ref | None:
        """Add the sums of both addends; None where no product is among them."""
        sums = [self._summed(value) if isinstance(value, Ref) else None for value in node.args]
        if not any(sums):
            return None
        found = (total or self._repeated(value) for total, value in zip(sums, node.args, strict=True))
        return self._add(node.op, tuple(found))

    def _repeated(self, value: Argument) -> Argument:
        """Sum an addend over the summed dimensions, those along which it is broadcast too."""
        if not isinstance(value, Ref):
            assert isinstance(value, int | float)
            return value * self._count()
        shape = self._spec(value).shape
        ahead = len(self._shape) - len(shape)
        own = tuple(dim - ahead for dim in self._dims if dim >= ahead and shape[dim - ahead] > 1)
        total = self._total(value, own) if own else value
        times = self._count() // math.prod(shape[dim] for dim in own)
        return self._number("mul", total, times) if times > 1 else total

    def _varies(self, factor: Argument) -> bool:
        if not isinstance(factor, Ref):
            return False
        shape = self._spec(factor).shape
        ahead = len(self._shape) - len(shape)
        return any(dim >= ahead and shape[dim - ahead] > 1 for dim in self._dims)

    def _uses(self, node: Node) -> int:
        return sum(ref.name == node.name for other in self._graph.nodes for ref in operands(other)) + sum(
            ref.name == node.name for ref in self._graph.outputs
        )

    def _count(self) -> int:
        return math.prod(self._shape[dim] for dim in self._dims)

    def _total(self, ref: Ref, dims: tuple[int, ...]) -> Ref:
        spec = self._spec(ref)
        shape = tuple(1 if dim in dims else extent for dim, extent in enumerate(spec.shape))
        return self._put(f"{ref.name}_total", "aten.sum.dim_IntList", (ref, dims, True), shape)

    def _product(self, left: Ref, right: Ref) -> Ref:
        shape = (self._spec(left).shape[0], self._spec(right).shape[1])
        return self._put("product", "aten.mm.default", (left, right), shape)

    def _number(self, op: str, ref: Ref, number: int) -> Ref:
        return self._put(op, f"aten.{op}.Tensor", (ref, number), self._spec(ref).shape)

    def _view(self, ref: Ref, shape: Iterable[int]) -> Ref:
        return self._put("viewed", "aten.view.default", (ref, tuple(shape)), tuple(shape))

    def _add(self, op: str, args: tuple[Argument, ...]) -> Ref:
        """Add an element-wise node, whose operands are broadcast."""
        shapes = [self._spec(one).shape for one in args if isinstance(one, Ref)]
        rank = max(map(len, shapes))
        wide = [(1,) * (rank - len(shape)) + shape for shape in shapes]
        return self._put("step", op, args, tuple(max(extents) for extents in zip(*wide, strict=True)))

    def _put(self, name: str, op: str, args: tuple[Argument, ...], shape: tuple[int, ...]) -> Ref:
        strides = tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape)))
        spec = TensorSpec(shape=shape, dtype="float32", strides=strides)
        taken = {
            value.name for value in (*self._graph.inputs, *self._graph.parameters, *self._graph.constants)
        }
        taken |= {node.name for node in (*self._graph.nodes, *self._new)}
        while name in taken:
            name += "_"
        self._new.append(Node(name=name, op=op, args=args, kwargs=(), outputs=(spec,)))
        return Ref(name)

    def _spec(self, ref: Ref) -> TensorSpec:
        own = next((node for node in self._new if node.name == ref.name), None)
        return own.outputs[0] if own else self._graph.spec(ref)
