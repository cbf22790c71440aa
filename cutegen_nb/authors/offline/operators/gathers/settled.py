"""Gathers that are the same at both sizes of a problem, and the extents of their results."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.authors.offline.operators.gathers.attributes import AxisMap, AxisSource, Gather, IndexedAxis
from cutegen_nb.core.errors import Declined


def settled(full: object, scaled: object) -> Gather:
    """Gather with those ways that fit both sizes. Raises Declined where there is none."""
    if not isinstance(full, Gather) or not isinstance(scaled, Gather):
        raise TypeError(f"{full!r} and {scaled!r} are not both the attributes of a gather")
    if (full.rank, full.fill, len(full.sources)) != (scaled.rank, scaled.fill, len(scaled.sources)):
        raise Declined("the places that elements are read from depend on the problem's size")
    sources = tuple(_both(one, other) for one, other in zip(full.sources, scaled.sources, strict=True))
    return Gather(sources=sources, rank=full.rank, fill=full.fill)


def _both(full: AxisSource, scaled: AxisSource) -> AxisSource:
    if isinstance(full, IndexedAxis) or isinstance(scaled, IndexedAxis):
        if full == scaled:
            return full
    else:
        ways = tuple(way for way in full if way in scaled)
        if ways:
            return ways
    raise Declined("the places that elements are read from depend on the problem's size")


def way_of(source: object) -> AxisMap:
    """First way of a settled source, which is right at every size that is known."""
    assert isinstance(source, tuple)
    way = source[0]
    assert isinstance(way, AxisMap)
    return way


def output_extents(gather: Gather) -> tuple[str, ...]:
    """Extents of the result as expressions of the operands' shapes, ``{0}`` being the input."""
    return tuple(_extent(gather.sources, dim) for dim in range(gather.rank))


def _extent(sources: Sequence[AxisSource], dim: int) -> str:
    # An index tensor tells the extent exactly; the input may have more elements than are read.
    for source in sources:
        if isinstance(source, IndexedAxis) and dim in source.dims:
            return f"{{{source.operand}}}.shape[{source.dims.index(dim)}]"
    for at, source in enumerate(sources):
        if isinstance(source, tuple) and way_of(source).dim == dim:
            return way_of(source).extent(f"{{0}}.shape[{at}]")
    raise Declined("the size of an indexed result cannot be told from its operands")


def keeps_last(gather: Gather) -> bool:
    """Return whether the last dimension is the input's own, so that vectors along it may be read."""
    last = gather.rank - 1
    own = gather.sources[-1]
    if not isinstance(own, tuple) or not way_of(own).same or way_of(own).dim != last:
        return False
    return not any(isinstance(source, IndexedAxis) and last in source.dims for source in gather.sources)
