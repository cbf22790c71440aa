"""Writer of kernels that interpolate between elements."""

from __future__ import annotations

from cutegen_nb.authors.offline.operators.gathers.strategies import ROWS, ROWS_STRATEGY
from cutegen_nb.authors.offline.operators.operator import OperatorCall, OperatorMatch, OperatorText
from cutegen_nb.authors.offline.operators.resampling.matching import interpolations_in
from cutegen_nb.authors.offline.operators.resampling.text import interpolation_text, output_sizes
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.strategy import Strategy


class ResamplingWriter:
    """Writer of linear interpolation over one, two and three dimensions, and of bicubic interpolation."""

    def matches(self, graph: Graph) -> tuple[OperatorMatch, ...]:
        """Find the interpolations in a graph, in order."""
        return interpolations_in(graph)

    def menu(self, call: OperatorCall) -> tuple[Strategy, ...]:
        """List the strategies in order. Raises Declined."""
        output_sizes(call)
        return (ROWS_STRATEGY,)

    def write(self, call: OperatorCall, applied: tuple[str, ...]) -> OperatorText:
        """Write the kernel with the strategies in `applied`. Raises Declined."""
        return interpolation_text(call, rows=ROWS in applied)
