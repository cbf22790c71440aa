"""New nodes for a traced graph, under names that nothing in it has yet."""

from __future__ import annotations

import math
from collections.abc import Iterable

from cutegen_nb.analysis.problem.workload import refs_in
from cutegen_nb.core.graph import Argument, Graph, Node, Ref, TensorSpec


class GraphBuilder:
    """Builder of nodes that compute on the values of one graph. Every result is contiguous."""

    def __init__(self, graph: Graph) -> None:
        self.nodes: list[Node] = []
        """New nodes, in order; others may be added between them."""
        self._specs: dict[str, tuple[TensorSpec, ...]] = {
            value.name: (value.spec,) for value in (*graph.inputs, *graph.parameters, *graph.constants)
        }
        self._specs |= {node.name: node.outputs for node in graph.nodes}

    def spec(self, ref: Ref) -> TensorSpec:
        """Return shape, dtype and strides of a value of the graph or of a new one."""
        return self._specs[ref.name][ref.index]

    def put(self, name: str, op: str, args: tuple[Argument, ...], shape: tuple[int, ...]) -> Ref:
        """Add a node of the dtype of its first operand; a number is added to a name that is taken."""
        strides = tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape)))
        spec = TensorSpec(shape=shape, dtype=self.spec(refs_in(args)[0]).dtype, strides=strides)
        number, wanted = 1, name
        while wanted in self._specs:
            number += 1
            wanted = f"{name}_{number}"
        self._specs[wanted] = (spec,)
        self.nodes.append(Node(name=wanted, op=op, args=args, kwargs=(), outputs=(spec,)))
        return Ref(wanted)

    def view(self, ref: Ref, shape: Iterable[int]) -> Ref:
        """View a value in another shape; the value itself if it has that shape."""
        wanted = tuple(shape)
        if self.spec(ref).shape == wanted:
            return ref
        return self.put("viewed", "aten.view.default", (ref, wanted), wanted)

    def permute(self, ref: Ref, order: tuple[int, ...], name: str = "turned") -> Ref:
        """Put dimensions in another order."""
        shape = self.spec(ref).shape
        return self.put(name, "aten.permute.default", (ref, order), tuple(shape[dim] for dim in order))

    def slice(self, ref: Ref, dim: int, begin: int, end: int) -> Ref:
        """Take a range of a dimension; the value itself if that is all of it."""
        shape = self.spec(ref).shape
        if (begin, end) == (0, shape[dim]):
            return ref
        shape = (*shape[:dim], end - begin, *shape[dim + 1 :])
        return self.put("sliced", "aten.slice.Tensor", (ref, dim, begin, end, 1), shape)

    def cat(self, refs: Iterable[Ref], dim: int, name: str = "joined") -> Ref:
        """Concatenate values along a dimension; a single one is returned itself."""
        parts = tuple(refs)
        if len(parts) == 1:
            return parts[0]
        shape = self.spec(parts[0]).shape
        extent = sum(self.spec(part).shape[dim] for part in parts)
        return self.put(name, "aten.cat.default", (parts, dim), (*shape[:dim], extent, *shape[dim + 1 :]))

    def total(self, ref: Ref, dims: tuple[int, ...]) -> Ref:
        """Sum over dimensions, which are kept with extent 1; the value itself if they have that extent."""
        whole = self.spec(ref).shape
        if all(whole[dim] == 1 for dim in dims):
            return ref
        shape = tuple(1 if dim in dims else extent for dim, extent in enumerate(whole))
        return self.put(f"{ref.name}_total", "aten.sum.dim_IntList", (ref, dims, True), shape)

    def product(self, left: Ref, right: Ref, name: str = "product") -> Ref:
        """Multiply two matrices."""
        shape = (self.spec(left).shape[0], self.spec(right).shape[1])
        return self.put(name, "aten.mm.default", (left, right), shape)

    def number(self, op: str, ref: Ref, number: float) -> Ref:
        """Multiply by a number (``mul``), divide by it (``div``), add it (``add``)."""
        return self.put(op, f"aten.{op}.Tensor", (ref, number), self.spec(ref).shape)

    def numbers(self, op: str, ref: Ref, extents: Iterable[int]) -> Ref:
        """Multiply or divide by extents one after another: a host can compute each, and not every product."""
        for extent in extents:
            ref = self.number(op, ref, extent)
        return ref

    def step(self, op: str, args: tuple[Argument, ...]) -> Ref:
        """Add an element-wise operation, whose operands are broadcast."""
        shapes = [self.spec(one).shape for one in args if isinstance(one, Ref)]
        rank = max(map(len, shapes))
        wide = [(1,) * (rank - len(shape)) + shape for shape in shapes]
        return self.put("step", op, args, tuple(max(extents) for extents in zip(*wide, strict=True)))
