"""Bilinear interpolation in a traced graph."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.authors.offline.operators.operator import OperatorMatch
from cutegen_nb.core.graph import Argument, Graph, Node, Ref

_FLOATS = frozenset({"float32", "float16", "bfloat16"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bilinear:
    """Bilinear interpolation of the last two dimensions."""

    align_corners: bool
    """True if the first and the last element keep their places."""
    scales: tuple[float, float] | None
    """Factors of height and width, as the caller gave them; None if the caller gave the sizes."""
    input_size: tuple[int, int]
    """Height and width of the input."""
    output_size: tuple[int, int]
    """Height and width of the output."""


def interpolations_in(graph: Graph) -> tuple[OperatorMatch, ...]:
    """Find the bilinear interpolations in a graph, in order."""
    found = (_match(graph, node) for node in graph.nodes if short_name(node.op) == "upsample_bilinear2d")
    return tuple(match for match in found if match is not None)


def _match(graph: Graph, node: Node) -> OperatorMatch | None:
    source, _, align, *scales = node.args
    if not isinstance(source, Ref) or graph.spec(source).dtype not in _FLOATS:
        return None
    height, width = graph.spec(source).shape[-2:]
    out_height, out_width = node.outputs[0].shape[-2:]
    return OperatorMatch(
        nodes=frozenset({node.name}),
        result=Ref(node.name),
        operands=(source,),
        attributes=Bilinear(
            align_corners=bool(align),
            scales=_pair(scales),
            input_size=(height, width),
            output_size=(out_height, out_width),
        ),
        name="interpolated",
    )


def _pair(scales: list[Argument]) -> tuple[float, float] | None:
    """Factors of both dimensions: two numbers, or one tuple of them; None where there are none."""
    given = scales[0] if len(scales) == 1 and isinstance(scales[0], tuple) else scales
    numbers = [float(value) for value in given or () if isinstance(value, int | float)]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None  # noqa: PLR2004 - height and width
