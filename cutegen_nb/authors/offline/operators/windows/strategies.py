"""Strategies for sliding windows, in the order to try them."""

from __future__ import annotations

from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.strategy import Bound, Optimisation, Strategy, lowers

# Names of the strategies.
MARCH = "march-over-slices"
SHARED = "slices-in-shared-memory"
PIPELINE = "double-buffered-slices"


def _strategy(
    name: str, statement: str, effects: str, absent: Optimisation, present: tuple[Optimisation, ...] = ()
) -> Strategy:
    """Build a strategy; `effects` are counters that go down, separated by spaces."""
    return Strategy(
        name=name,
        statement=statement,
        classes=(WorkloadClass.POOLING, WorkloadClass.CONVOLUTION, WorkloadClass.FUSED),
        bounds=(Bound.MEMORY, Bound.LATENCY),
        effects=lowers(*effects.split()),
        absent=(absent,),
        present=present,
    )


MARCH_STRATEGY = _strategy(
    MARCH,
    "March through the input along the slowest dimension of the windows: each thread reduces its part of a "
    "slice once and adds it to all outputs whose windows hold the slice, which it keeps in registers. "
    "Neighbouring threads take neighbouring outputs, and a window's taps are unrolled.",
    "gmem_load_sectors warp_instructions",
    Optimisation.REGISTER_BLOCKS,
)
SHARED_STRATEGY = _strategy(
    SHARED,
    "Stage slices in shared memory with the rim that windows share, in vectors of 128 bits where rows are "
    "aligned and by cp.async: each element of the input crosses global memory about once, padding is written "
    "with the slice, and no tap needs a test.",
    "gmem_load_sectors",
    Optimisation.SHARED_TILES,
)
PIPELINE_STRATEGY = _strategy(
    PIPELINE,
    "Keep two stages of slices in shared memory: while threads reduce one, cp.async fills the other, and one "
    "barrier a stage is enough.",
    "barriers latency_ms",
    Optimisation.PIPELINED,
    (Optimisation.SHARED_TILES,),
)
WINDOW_STRATEGIES = (MARCH_STRATEGY, SHARED_STRATEGY, PIPELINE_STRATEGY)
"""All strategies; each builds on those before it."""
