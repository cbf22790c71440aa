"""Writer of kernels that take elements between those of the input."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.authors.offline.operators.gathers.strategies import ROWS, ROWS_STRATEGY
from cutegen_nb.authors.offline.operators.operator import OperatorCall, OperatorMatch, OperatorText
from cutegen_nb.authors.offline.operators.resampling.grids import (
    PIXELS,
    GridSampling,
    grid_menu,
    grid_samplings_in,
    grid_text,
)
from cutegen_nb.authors.offline.operators.resampling.matching import interpolations_in
from cutegen_nb.authors.offline.operators.resampling.text import interpolation_text, output_sizes
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.strategy import Strategy


class ResamplingWriter:
    """Writer of interpolation, linear and bicubic, and of sampling at a grid's places."""

    def matches(self, graph: Graph) -> tuple[OperatorMatch, ...]:
        """Find the interpolations and the samplings in a graph."""
        return (*interpolations_in(graph), *grid_samplings_in(graph))

    def menu(self, call: OperatorCall) -> tuple[Strategy, ...]:
        """List the strategies in order. Raises Declined."""
        if isinstance(call.attributes, GridSampling):
            return grid_menu(call.attributes)
        output_sizes(call)
        # The taps of one element are under way together too, so that the simplest kernel has several loads in
        # flight before this step.
        return (replace(ROWS_STRATEGY, absent=()),)

    def write(self, call: OperatorCall, applied: tuple[str, ...]) -> OperatorText:
        """Write the kernel with the strategies in `applied`. Raises Declined."""
        if isinstance(call.attributes, GridSampling):
            return grid_text(call, call.attributes, pixels=PIXELS in applied)
        return interpolation_text(call, rows=ROWS in applied)
