"""Strategies for attention, in words."""

from __future__ import annotations

from cutegen_nb.core.strategy import Bound, Direction, ExpectedEffect, Optimisation, Strategy

TILES = "attention-tiles"
PIPELINE = "attention-pipeline"


def _strategy(
    name: str, statement: str, effects: str, *, absent: Optimisation, present: tuple[Optimisation, ...] = ()
) -> Strategy:
    """Build a strategy; `effects` are counters that go down, separated by spaces."""
    return Strategy(
        name=name,
        statement=statement,
        bounds=(Bound.MEMORY, Bound.COMPUTE, Bound.LATENCY),
        effects=tuple(ExpectedEffect(counter=item, direction=Direction.DOWN) for item in effects.split()),
        absent=(absent,),
        present=present,
    )


_TILES = (
    "Multiply blocks of queries and keys on the tensor cores from swizzled tiles in shared memory{}. The "
    "softmax is corrected block by block and the outputs stay in registers, so that no score reaches memory."
)

TILE_STRATEGIES = {
    "float32": _strategy(
        TILES,
        _TILES.format(", with float32's accuracy: three TF32 products of the factors' upper and lower bits"),
        "gmem_load_sectors warp_instructions",
        absent=Optimisation.TENSOR_CORES,
    ),
    "float16": _strategy(
        TILES,
        _TILES.format(", read by ldmatrix, with sums in float32"),
        "gmem_load_sectors warp_instructions",
        absent=Optimisation.TENSOR_CORES,
    ),
}
"""First kernel on tensor cores by the operands' dtype; bfloat16 is as float16."""

PIPELINE_STRATEGY = _strategy(
    PIPELINE,
    "Keep two stages of tiles in shared memory: while one is multiplied, cp.async fills the other, across "
    "the softmax too, and one barrier a step is enough.",
    "barriers latency_ms",
    absent=Optimisation.PIPELINED,
    present=(Optimisation.TENSOR_CORES,),
)
