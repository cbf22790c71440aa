"""Writer of kernels that fetch each element from another place."""

from __future__ import annotations

from cutegen_nb.authors.offline.operators.gathers.matches import gathers_in
from cutegen_nb.authors.offline.operators.gathers.settled import keeps_last, output_extents, settled
from cutegen_nb.authors.offline.operators.gathers.strategies import (
    IN_FLIGHT,
    IN_FLIGHT_STRATEGY,
    ROWS,
    ROWS_STRATEGY,
    VECTORS,
    VECTORS_STRATEGY,
)
from cutegen_nb.authors.offline.operators.gathers.text import gather_text
from cutegen_nb.authors.offline.operators.operator import OperatorCall, OperatorMatch, OperatorText
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.strategy import Strategy

_IN_FLIGHT = 4
"""Loads of a thread before its first store, once several are under way."""


class GathersWriter:
    """Writer of padding, flips, rolls, repeats, embeddings and indexing."""

    def matches(self, graph: Graph) -> tuple[OperatorMatch, ...]:
        """Find the gathers in a graph, in order."""
        return gathers_in(graph)

    def menu(self, call: OperatorCall) -> tuple[Strategy, ...]:
        """List the strategies in order. Raises Declined."""
        gather = settled(call.attributes, call.scaled_attributes)
        output_extents(gather)
        if "bool" in (call.dtype, call.operands[0].dtype):
            raise Declined("the offline author does not gather elements of bool")
        if keeps_last(gather):
            return (VECTORS_STRATEGY, IN_FLIGHT_STRATEGY)
        return (ROWS_STRATEGY,)

    def write(self, call: OperatorCall, applied: tuple[str, ...]) -> OperatorText:
        """Write the kernel with the strategies in `applied`. Raises Declined."""
        gather = settled(call.attributes, call.scaled_attributes)
        if keeps_last(gather) and {VECTORS, IN_FLIGHT} & set(applied):
            return gather_text(call, gather, "vectors", in_flight=_IN_FLIGHT if IN_FLIGHT in applied else 1)
        if ROWS in applied and not keeps_last(gather):
            return gather_text(call, gather, "rows", in_flight=_IN_FLIGHT)
        return gather_text(call, gather, "element")
