"""Tensors filled slice by slice with elements of one other tensor, as circular padding is.

PyTorch's trace spells circular padding as an empty tensor whose middle is the input; then the strips at both
ends of each dimension are copied from the tensor itself. Along each dimension the elements come from an index
vector of its own. It is computed here, and recognised as other index vectors are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.authors.offline.operators.gathers.attributes import AxisMap, AxisSource
from cutegen_nb.authors.offline.operators.gathers.index_vectors import LONGEST, Vector, axis_maps
from cutegen_nb.core.graph import Argument, Graph, Node, Ref


@dataclass(frozen=True, slots=True)
class _Filling:
    """Tensor as elements of another one."""

    source: Ref | None
    """Tensor that the elements come from; None where nothing is filled yet."""
    places: tuple[Vector, ...]
    """Index in the source along each dimension, -1 where nothing is filled."""

    @property
    def whole(self) -> bool:
        """True if every element is filled."""
        return self.source is not None and all(bool((place >= 0).all()) for place in self.places)

    def along(self, dim: int, vector: Vector) -> _Filling:
        """Filling with another index vector along one dimension."""
        return replace(self, places=(*self.places[:dim], vector, *self.places[dim + 1 :]))


def filled_from(graph: Graph, node: Node) -> tuple[Ref, tuple[AxisSource, ...]] | None:
    """Source of a tensor that ``slice_scatter`` fills last, and the ways along its dimensions.

    None where the tensor is filled further, in part only, from several tensors, or in an unknown way.
    """
    if not _is_last(graph, node) or max(node.outputs[0].shape) > LONGEST:
        return None
    filling = _filling(graph, node)
    if filling is None or filling.source is None or not filling.whole:
        return None
    extents = graph.spec(filling.source).shape
    ways = [
        (AxisMap(dim),) if np.array_equal(places, np.arange(extent)) else axis_maps(places, extent, dim)
        for dim, (places, extent) in enumerate(zip(filling.places, extents, strict=True))
    ]
    return (filling.source, tuple(ways)) if all(ways) else None


def _is_last(graph: Graph, node: Node) -> bool:
    """Return whether a tensor is not filled further."""
    return not any(
        short_name(user.op) == "slice_scatter" and user.args[0] == Ref(node.name) for user in graph.nodes
    )


def _filling(graph: Graph, last: Node) -> _Filling | None:
    """Carry out the steps up to `last`, in order; None where its elements are not all known."""
    known: dict[Argument, _Filling | None] = {}
    for node in graph.nodes:
        op, ref = short_name(node.op), Ref(node.name)
        if op == "empty":
            known[ref] = _Filling(None, tuple(np.full(extent, -1) for extent in node.outputs[0].shape))
        if op not in _STEPS:
            continue
        before = [known[arg] if arg in known else _itself(graph, arg) for arg in node.args[:2]]
        filling = _STEPS[op](node, before)
        if node is last:
            return filling
        # What is filled before this tensor is a tensor by itself, and so is a slice of one.
        ends = op == "slice_scatter" and filling is not None and filling.whole and _is_last(graph, node)
        part = op == "slice" and before[0] is not None and before[0].source == node.args[0]
        if not ends and not (part and graph.spec(ref).shape != _shape(before[0])):
            known[ref] = filling
    return None


def _shape(filling: _Filling | None) -> tuple[int, ...]:
    return tuple(len(place) for place in filling.places) if filling else ()


def _itself(graph: Graph, argument: Argument) -> _Filling | None:
    if not isinstance(argument, Ref) or max(graph.spec(argument).shape, default=0) > LONGEST:
        return None
    return _Filling(argument, tuple(np.arange(extent) for extent in graph.spec(argument).shape))


def _bounds(numbers: tuple[Argument, ...], rank: int) -> tuple[int, slice] | None:
    """Dimension and range of a slice; None where it skips elements."""
    dim, begin, end, step = (*numbers, *(None, None, None, None))[:4]
    if not isinstance(dim, int) or step not in (None, 1):
        return None
    if not isinstance(begin, int | None) or not isinstance(end, int | None):
        return None
    return dim % rank, slice(begin, end)


def _copied(node: Node, before: list[_Filling | None]) -> _Filling | None:
    """Filling of a copy, which may also broadcast."""
    return before[1] if before[1] is not None and _shape(before[1]) == node.outputs[0].shape else None


def _sliced(node: Node, before: list[_Filling | None]) -> _Filling | None:
    """Filling of a slice."""
    whole = before[0]
    bounds = _bounds(node.args[1:], len(node.outputs[0].shape))
    if whole is None or bounds is None:
        return None
    dim, places = bounds
    return whole.along(dim, whole.places[dim][places])


def _scattered(node: Node, before: list[_Filling | None]) -> _Filling | None:
    """Filling after one more slice; None where a dimension's indices are not the same everywhere."""
    target, given = before
    bounds = _bounds(node.args[2:], len(node.outputs[0].shape))
    if target is None or given is None or given.source is None or bounds is None:
        return None
    dim, places = bounds
    vector = target.places[dim].copy()
    vector[places] = given.places[dim]
    if target.source is None:
        # Nothing is filled elsewhere along this dimension; along the others the new indices count.
        return given.along(dim, vector)
    pairs = enumerate(zip(target.places, given.places, strict=True))
    alike = all(at == dim or np.array_equal(old, new) for at, (old, new) in pairs)
    return target.along(dim, vector) if alike and target.source == given.source else None


_STEPS = {"copy": _copied, "slice": _sliced, "slice_scatter": _scattered}
"""Filling after a step, from those of its first two operands."""
