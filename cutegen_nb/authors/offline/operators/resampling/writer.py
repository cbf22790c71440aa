"""Writer of kernels that interpolate between elements."""

from __future__ import annotations

from cutegen_nb.authors.offline.operators.gathers.strategies import ROWS, ROWS_STRATEGY
from cutegen_nb.authors.offline.operators.operator import (
    OperatorCall,
    OperatorMatch,
    OperatorTail,
    OperatorText,
)
from cutegen_nb.authors.offline.operators.resampling.matching import Bilinear, interpolations_in
from cutegen_nb.authors.offline.templates import render, signature
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.strategy import Strategy


class ResamplingWriter:
    """Writer of bilinear interpolation."""

    def matches(self, graph: Graph) -> tuple[OperatorMatch, ...]:
        """Find the interpolations in a graph, in order."""
        return interpolations_in(graph)

    def menu(self, call: OperatorCall) -> tuple[Strategy, ...]:
        """List the strategies in order. Raises Declined."""
        _sizes(call)
        return (ROWS_STRATEGY,)

    def write(self, call: OperatorCall, applied: tuple[str, ...]) -> OperatorText:
        """Write the kernel with the strategies in `applied`. Raises Declined."""
        upper, rows = call.name.upper(), ROWS in applied
        source = render("resampling/bilinear", rows=rows, **_values(call, upper))
        constants = {f"{upper}_THREADS": "256"}
        if rows:
            constants[f"{upper}_IN_FLIGHT"] = "4  # elements of a lane between two tests of the row's end"
        return OperatorText(source=source, constants=constants)


def _sizes(call: OperatorCall) -> tuple[str, str]:
    """Height and width of the output as expressions of ``H`` and ``W``. Raises Declined."""
    full, scaled = call.attributes, call.scaled_attributes
    assert isinstance(full, Bilinear)
    assert isinstance(scaled, Bilinear)
    if (full.align_corners, full.scales) != (scaled.align_corners, scaled.scales):
        raise Declined("the factors of the interpolation depend on the problem's size")
    if full.scales:
        return f"int(H * {full.scales[0]})", f"int(W * {full.scales[1]})"
    return _size(full, scaled, 0), _size(full, scaled, 1)


def _size(full: Bilinear, scaled: Bilinear, axis: int) -> str:
    """Size that the caller gave: a number, or a multiple of the input's."""
    (of, to), (small_of, small_to) = (
        (item.input_size[axis], item.output_size[axis]) for item in (full, scaled)
    )
    if to == small_to:
        return str(to)
    if not to % of and to // of * small_of == small_to:
        return f"{'HW'[axis]} * {to // of}"
    raise Declined("the size of the interpolation depends on the problem's size")


def _values(call: OperatorCall, upper: str) -> dict[str, object]:
    full = call.attributes
    assert isinstance(full, Bilinear)
    height, width = _sizes(call)
    tail = call.tail or OperatorTail(extras=(), lines=(), value="acc")
    extras = [extra.name for extra in tail.extras]
    tensors = ["mX", "mY", *(f"m_{extra}" for extra in extras)]
    return {
        **signature(call.name, tensors, ["steps"]),
        "upper": upper,
        "align": full.align_corners,
        "scales": full.scales,
        "height": height,
        "width": width,
        "lead": len(call.shape) - 2,
        "extras": extras,
        "tail_lines": tail.lines,
        "value": tail.value,
        "extra_arguments": "".join(f", m_{extra}" for extra in extras),
        "extra_params": "".join(f", m_{extra}: cute.Tensor" for extra in extras),
        "x": call.operands[0].name,
        "names": [call.operands[0].name, *extras],
    }
