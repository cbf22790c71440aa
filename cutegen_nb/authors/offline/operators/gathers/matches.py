"""Nodes of a graph that fetch each element from another place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cutegen_nb.analysis.problem.workload import operands
from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.authors.offline.operators.gathers.attributes import AxisMap, AxisSource, Gather, IndexedAxis
from cutegen_nb.authors.offline.operators.operator import OperatorMatch
from cutegen_nb.core.graph import Argument, Graph, Node, Ref

_INDICES = frozenset({"int64", "int32"})
"""dtypes of indices."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Gather of one node."""

    operands: tuple[Ref, ...]
    gather: Gather


def gathers_in(graph: Graph) -> tuple[OperatorMatch, ...]:
    """Find the gathers of a graph, those of gathers joined to one where it can be."""
    matches: dict[Ref, OperatorMatch] = {}
    for node in graph.nodes:
        read = _READERS.get(short_name(node.op))
        found = read(graph, node) if read is not None else None
        if found is None or 0 in node.outputs[0].shape:
            continue
        match = OperatorMatch(
            nodes=frozenset({node.name}),
            result=Ref(node.name),
            operands=found.operands,
            attributes=found.gather,
            name=_NAMES.get(short_name(node.op), "gathered"),
        )
        before = matches.get(found.operands[0])
        joined = _joined(graph, before, match) if before is not None else None
        if joined is not None:
            del matches[found.operands[0]]
        matches[match.result] = joined or match
    return tuple(matches.values())


def _joined(graph: Graph, first: OperatorMatch, second: OperatorMatch) -> OperatorMatch | None:
    """Join a gather and one of its result; None where it is used elsewhere, or the two do not compose."""
    users = [node for node in graph.nodes if first.result in operands(node)]
    if len(users) != 1 or first.result in graph.outputs:
        return None
    before, after = first.attributes, second.attributes
    assert isinstance(before, Gather)
    assert isinstance(after, Gather)
    if _pads(before) and _pads(after):
        return None
    # The second gather's index tensors follow the first one's.
    shifted = len(first.operands) - 1
    sources = [_composed(source, after.sources, shifted) for source in before.sources]
    if any(source is None for source in sources):
        return None
    return OperatorMatch(
        nodes=first.nodes | second.nodes,
        result=second.result,
        operands=(*first.operands, *second.operands[1:]),
        attributes=Gather(
            sources=tuple(source for source in sources if source is not None),
            rank=after.rank,
            fill=before.fill if _pads(before) else after.fill,
        ),
        name=second.name if second.name == first.name else "gathered",
    )


def _composed(source: AxisSource, after: tuple[AxisSource, ...], shifted: int) -> AxisSource | None:
    """Source of a coordinate behind a second gather: one of the two must leave the coordinate as it is."""
    if isinstance(source, IndexedAxis):
        # An index tensor is read at coordinates that the second gather must keep.
        dims: list[int | None] = []
        for dim in source.dims:
            way = None if dim is None else after[dim]
            if dim is not None and (isinstance(way, IndexedAxis) or way is None or not way[0].same):
                return None
            dims.append(way[0].dim if isinstance(way, tuple) else None)
        return replace(source, dims=tuple(dims))
    second = after[source[0].dim]
    if isinstance(second, IndexedAxis):
        return replace(second, operand=second.operand + shifted) if source[0].same else None
    if second[0].same:
        return tuple(replace(way, dim=second[0].dim) for way in source)
    return second if source[0].same else None


def _pads(gather: Gather) -> bool:
    return any(isinstance(source, tuple) and any(way.may_miss for way in source) for source in gather.sources)


def _same(dim: int) -> tuple[AxisMap, ...]:
    return (AxisMap(dim),)


def _padded(_: Graph, node: Node) -> _Found | None:
    source, pads = node.args[0], node.args[1]
    fill = node.args[2] if len(node.args) > 2 else 0  # noqa: PLR2004 - (x, pads, value)
    if not isinstance(source, Ref) or not isinstance(pads, tuple) or not isinstance(fill, int | float):
        return None
    rank = len(node.outputs[0].shape)
    sources: list[AxisSource] = []
    for dim in range(rank):
        # Pairs of (before, after) from the last dimension on.
        at = 2 * (rank - 1 - dim)
        before, behind = pads[at : at + 2] if at < len(pads) else (0, 0)
        if not isinstance(before, int) or not isinstance(behind, int):
            return None
        sources.append((AxisMap(dim, "shift", before, before + behind),))
    return _Found((source,), Gather(sources=tuple(sources), rank=rank, fill=fill))


def _reversed(_: Graph, node: Node) -> _Found | None:
    source, dims = node.args[0], node.args[1]
    if not isinstance(source, Ref) or not isinstance(dims, tuple):
        return None
    rank = len(node.outputs[0].shape)
    turned = {int(dim) % rank for dim in dims if isinstance(dim, int)}
    sources = tuple((AxisMap(dim, "reverse"),) if dim in turned else _same(dim) for dim in range(rank))
    return _Found((source,), Gather(sources=sources, rank=rank))


def _embedded(graph: Graph, node: Node) -> _Found | None:
    weight, indices = node.args[:2]
    return _indexed(graph, node, weight, (indices, None), wraps=False)


def _selected(graph: Graph, node: Node) -> _Found | None:
    source, dim, indices = node.args[:3]
    if not isinstance(source, Ref) or not isinstance(dim, int):
        return None
    rank = len(graph.spec(source).shape)
    given = tuple(indices if at == dim % rank else None for at in range(rank)) if rank else ()
    return _indexed(graph, node, source, given, wraps=False)


def _by_index(graph: Graph, node: Node) -> _Found | None:
    source, indices = node.args[:2]
    if not isinstance(source, Ref) or not isinstance(indices, tuple):
        return None
    rank = len(graph.spec(source).shape)
    return _indexed(graph, node, source, (*indices, *[None] * (rank - len(indices))), wraps=True)


def _indexed(
    graph: Graph, node: Node, source: Argument, indices: tuple[Argument, ...], *, wraps: bool
) -> _Found | None:
    """Read an index along some dimensions: their place is taken by those that the indices broadcast to."""
    if not isinstance(source, Ref) or not any(indices):
        return None
    places = [at for at, index in enumerate(indices) if index is not None]
    shapes = [graph.spec(index).shape for index in indices if isinstance(index, Ref)]
    rank, width = len(node.outputs[0].shape), max(map(len, shapes))
    # Indices along neighbouring dimensions stay there; others come first.
    together = places == list(range(places[0], places[-1] + 1))
    begin = places[0] if together else 0
    kept = iter([dim for dim in range(rank) if not begin <= dim < begin + width])
    given: list[Ref] = [source]
    sources: list[AxisSource] = []
    for at, index in enumerate(indices):
        if not isinstance(index, Ref):
            sources.append(_same(next(kept)))
            continue
        shape = graph.spec(index).shape
        dims = range(begin + width - len(shape), begin + width)
        found: AxisSource = _computed(graph, index, list(dims), graph.spec(source).shape[at])
        if not found:
            if graph.spec(index).dtype not in _INDICES:
                return None
            given.append(index)
            spread = [extent < node.outputs[0].shape[dim] for dim, extent in zip(dims, shape, strict=True)]
            read_at = tuple(None if one else dim for dim, one in zip(dims, spread, strict=True))
            found = IndexedAxis(len(given) - 1, read_at, wraps)
        sources.append(found)
    return _Found(tuple(given), Gather(sources=tuple(sources), rank=rank))


def _computed(graph: Graph, index: Ref, dims: list[int], extent: int) -> tuple[AxisMap, ...]:
    """Ways that make an index tensor along one dimension; empty where it is not made from numbers."""
    from cutegen_nb.authors.offline.operators.gathers.index_vectors import (  # noqa: PLC0415 - imports NumPy
        axis_maps,
        index_values,
    )

    values = index_values(graph, index)
    long = [dim for dim, length in zip(dims, graph.spec(index).shape, strict=True) if length > 1]
    if values is None or len(long) != 1:
        return ()
    return axis_maps(values.reshape(-1), extent, long[0])


def _filled(graph: Graph, node: Node) -> _Found | None:
    from cutegen_nb.authors.offline.operators.gathers.filled import (  # noqa: PLC0415 - imports NumPy
        filled_from,
    )

    found = filled_from(graph, node)
    if found is None:
        return None
    source, sources = found
    return _Found((source,), Gather(sources=sources, rank=len(sources)))


def _taken(graph: Graph, node: Node) -> _Found | None:
    source, dim, index = node.args[:3]
    if not isinstance(source, Ref) or not isinstance(dim, int) or not isinstance(index, Ref):
        return None
    rank = len(node.outputs[0].shape)
    # One element a row is a sum over the row, which may join the loops around it.
    if not rank or graph.spec(index).shape[dim % rank] == 1:
        return None
    along = IndexedAxis(1, tuple(range(rank)))
    sources = tuple(along if at == dim % rank else _same(at) for at in range(rank))
    return _Found((source, index), Gather(sources=sources, rank=rank))


_READERS: dict[str, Callable[[Graph, Node], _Found | None]] = {
    "constant_pad_nd": _padded,
    "flip": _reversed,
    "embedding": _embedded,
    "index_select": _selected,
    "index": _by_index,
    "gather": _taken,
    "slice_scatter": _filled,
}
"""Readers of nodes by ATen's short name."""
_NAMES = {
    "constant_pad_nd": "padded",
    "slice_scatter": "padded",
    "flip": "flipped",
    "embedding": "embedded",
}
"""Name of the generated function by ATen's short name."""
