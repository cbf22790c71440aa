"""Sampling of an image at the places that a grid names: matches in a graph, strategy, text of the kernel."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.authors.offline.operators.operator import (
    OperatorCall,
    OperatorMatch,
    OperatorTail,
    OperatorText,
)
from cutegen_nb.authors.offline.templates import render, signature
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Graph, Node, Ref
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.strategy import Bound, Strategy, lowers

PIXELS = "pixels-over-channels"
PIXELS_STRATEGY = Strategy(
    name=PIXELS,
    statement="Give each thread one pixel of the output in eight channels: the grid is read, and place and "
    "weights are computed, once for all of them, and the loads of all eight are under way together.",
    classes=(WorkloadClass.ELEMENTWISE, WorkloadClass.FUSED, WorkloadClass.OTHER),
    bounds=(Bound.MEMORY, Bound.LATENCY),
    effects=lowers("gmem_load_sectors", "warp_instructions"),
)
_MODES = ("bilinear", "nearest", "bicubic")
"""Ways to sample between elements, in ATen's order."""
_PADDINGS = ("zeros", "border", "reflection")
"""Elements outside the input, in ATen's order."""
_FLOATS = frozenset({"float32", "float16", "bfloat16"})
_OPERATION = "grid_sampler_2d"


@dataclass(frozen=True, slots=True, kw_only=True)
class GridSampling:
    """Sampling at a grid's places."""

    mode: str
    """``bilinear``, ``nearest`` or ``bicubic``."""
    padding: str
    """Elements outside the input: ``zeros``, ``border`` or ``reflection``."""
    align_corners: bool
    """True if -1 and 1 are the centres of the first and the last element, not their outer edges."""


def grid_samplings_in(graph: Graph) -> tuple[OperatorMatch, ...]:
    """Find the samplings in a graph, in order."""
    found = (_match(graph, node) for node in graph.nodes if short_name(node.op) == _OPERATION)
    return tuple(match for match in found if match is not None)


def _match(graph: Graph, node: Node) -> OperatorMatch | None:
    source, grid, mode, padding, align = node.args
    if not isinstance(source, Ref) or not isinstance(grid, Ref):
        return None
    if not {graph.spec(source).dtype, graph.spec(grid).dtype} <= _FLOATS:
        return None
    assert isinstance(mode, int)
    assert isinstance(padding, int)
    return OperatorMatch(
        nodes=frozenset({node.name}),
        result=Ref(node.name),
        operands=(source, grid),
        attributes=GridSampling(mode=_MODES[mode], padding=_PADDINGS[padding], align_corners=bool(align)),
        name="sampled",
    )


def grid_menu(sampling: GridSampling) -> tuple[Strategy, ...]:
    """List the strategies in order. Raises Declined."""
    if sampling.mode == "bicubic":
        raise Declined("the offline author does not write grid_sample with mode='bicubic'")
    return (PIXELS_STRATEGY,)


def grid_text(call: OperatorCall, sampling: GridSampling, *, pixels: bool) -> OperatorText:
    """Write the kernel: a thread for each pixel and several channels, or for each element."""
    upper = call.name.upper()
    tail = call.tail or OperatorTail(extras=(), lines=(), value="acc")
    extras = [extra.name for extra in tail.extras]
    nearest = sampling.mode == "nearest"
    source = render(
        "resampling/grid",
        **signature(call.name, ["mX", "mGrid", "mY", *(f"m_{extra}" for extra in extras)], ()),
        upper=upper,
        align=sampling.align_corners,
        padding=sampling.padding,
        nearest=nearest,
        taps=1 if nearest else 2,
        pixels=pixels,
        extras=extras,
        tail_lines=tail.lines,
        value=tail.value,
        extra_arguments="".join(f", m_{extra}" for extra in extras),
        extra_params="".join(f", m_{extra}: cute.Tensor" for extra in extras),
        names=[*(operand.name for operand in call.operands), *extras],
    )
    constants = {f"{upper}_THREADS": "256"}
    if pixels:
        constants[f"{upper}_CHANNELS"] = "8  # channels of a thread, all read before its first store"
    return OperatorText(source=source, constants=constants)
