"""Strategies for gathers, in the order to try them."""

from __future__ import annotations

from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.strategy import Bound, Optimisation, Strategy, lowers

# Names of the strategies.
VECTORS = "gather-vectors"
ROWS = "warps-along-rows"
IN_FLIGHT = "gathers-in-flight"


def _strategy(
    name: str,
    statement: str,
    effects: str,
    absent: Optimisation | None,
    present: tuple[Optimisation, ...] = (),
) -> Strategy:
    """Build a strategy; `effects` are counters that go down, separated by spaces."""
    return Strategy(
        name=name,
        statement=statement,
        classes=(WorkloadClass.ELEMENTWISE, WorkloadClass.FUSED, WorkloadClass.OTHER),
        bounds=(Bound.MEMORY, Bound.LATENCY),
        effects=lowers(*effects.split()),
        absent=() if absent is None else (absent,),
        present=present,
    )


VECTORS_STRATEGY = _strategy(
    VECTORS,
    "Fetch vectors of 128 bits along the last dimension, where elements keep their order: the place in the "
    "input is computed once a vector, and an index is read once for all of it.",
    "warp_instructions",
    Optimisation.VECTORS,
)
IN_FLIGHT_STRATEGY = _strategy(
    IN_FLIGHT,
    "Let each thread fetch four vectors before it stores the first: the indices and then the elements of all "
    "four are under way together, so that the two latencies are paid once.",
    "latency_ms",
    Optimisation.IN_FLIGHT,
    (Optimisation.VECTORS,),
)
ROWS_STRATEGY = _strategy(
    ROWS,
    "Give each warp a stretch of one row of the output: where the row lies in the input is computed once, "
    "and each lane has four loads under way before its first store.",
    "warp_instructions",
    Optimisation.IN_FLIGHT,
)
