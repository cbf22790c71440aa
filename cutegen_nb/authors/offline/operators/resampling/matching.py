"""Interpolation in a traced graph."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.authors.offline.operators.operator import OperatorMatch
from cutegen_nb.core.graph import Argument, Graph, Node, Ref

_FLOATS = frozenset({"float32", "float16", "bfloat16"})
_RANKS = {
    "upsample_linear1d": 1,
    "upsample_bilinear2d": 2,
    "upsample_bicubic2d": 2,
    "upsample_trilinear3d": 3,
    "_upsample_bilinear2d_aa": 2,
    "_upsample_bicubic2d_aa": 2,
}
"""Number of interpolated dimensions by ATen's short name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpolation:
    """Interpolation of the last dimensions."""

    cubic: bool = False
    """True if four elements count along each dimension, not two."""
    antialias: bool = False
    """True if all elements under a smaller output's element count."""
    align_corners: bool
    """True if the first and the last element keep their places."""
    scales: tuple[float, ...] | None
    """Factor of each dimension, as the caller gave them; None if the caller gave the sizes."""
    input_size: tuple[int, ...]
    """Extents of the input."""
    output_size: tuple[int, ...]
    """Extents of the output."""


def interpolations_in(graph: Graph) -> tuple[OperatorMatch, ...]:
    """Find the interpolations in a graph, in order."""
    found = (_match(graph, node) for node in graph.nodes if short_name(node.op) in _RANKS)
    return tuple(match for match in found if match is not None)


def _match(graph: Graph, node: Node) -> OperatorMatch | None:
    source, _, align, *scales = node.args
    if not isinstance(source, Ref) or graph.spec(source).dtype not in _FLOATS:
        return None
    op = short_name(node.op)
    rank = _RANKS[op]
    return OperatorMatch(
        nodes=frozenset({node.name}),
        result=Ref(node.name),
        operands=(source,),
        attributes=Interpolation(
            cubic="cubic" in op,
            antialias=op.endswith("_aa"),
            align_corners=bool(align),
            scales=_factors(scales, rank),
            input_size=graph.spec(source).shape[-rank:],
            output_size=node.outputs[0].shape[-rank:],
        ),
        name="interpolated",
    )


def _factors(scales: list[Argument], rank: int) -> tuple[float, ...] | None:
    """Factors of all dimensions: a number each, or one tuple of them; None where there are none."""
    given = scales[0] if len(scales) == 1 and isinstance(scales[0], tuple) else scales
    numbers = tuple(float(value) for value in given or () if isinstance(value, int | float))
    return numbers if len(numbers) == rank else None
