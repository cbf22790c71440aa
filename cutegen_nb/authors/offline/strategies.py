"""What can be done to the kernels of a plan, in which order, and which counter each step moves."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.authors.offline.loops import loop_nest
from cutegen_nb.authors.offline.plan import Plan
from cutegen_nb.authors.offline.variants import (
    COALESCED,
    GRID_STRIDE,
    IN_FLIGHT,
    SIMPLEST,
    VECTORISE,
    Variant,
)
from cutegen_nb.core.strategy import Bound, Direction, ExpectedEffect, Strategy


@dataclass(frozen=True, slots=True)
class Ladder:
    """Where a problem starts and what may follow."""

    start: Variant
    """The simplest kernel worth running."""
    strategies: tuple[Strategy, ...]
    """In order."""

    def rationale(self, applied: tuple[str, ...], variant: Variant) -> str:
        """What the last step did, in words."""
        step = next((item for item in self.strategies if applied and item.name == applied[-1]), None)
        return step.statement if step else "The simplest kernel that is right."


def _strategy(name: str, statement: str, *effects: str) -> Strategy:
    """`effects` are counters with a sign: ``-gmem_requests``."""
    return Strategy(
        name=name,
        statement=statement,
        bounds=(Bound.MEMORY, Bound.LATENCY),
        effects=tuple(
            ExpectedEffect(counter=item[1:], direction=Direction.DOWN if item[0] == "-" else Direction.UP)
            for item in effects
        ),
        source="library",
    )


ELEMENTWISE = {
    COALESCED: _strategy(
        COALESCED,
        "Count elements along the contiguous dimension, so that a warp's 32 accesses fall into as few 32-byte "
        "sectors as their bytes need.",
        "-gmem_load_sectors",
        "-gmem_store_sectors",
    ),
    VECTORISE: _strategy(
        VECTORISE,
        "Load and store 128 bits a thread: a quarter of the memory instructions for fp32, an eighth for fp16.",
        "-gmem_requests",
        "-warp_instructions",
    ),
    IN_FLIGHT: _strategy(
        IN_FLIGHT,
        "Let each thread issue four vector loads before it uses the first, so that more bytes are in flight "
        "and the index arithmetic is shared.",
        "-warp_instructions",
        "-latency_ms",
    ),
    GRID_STRIDE: _strategy(
        GRID_STRIDE,
        "Launch fewer CTAs and let each loop over the tensor with the grid's stride: start-up costs are paid "
        "once a thread.",
        "-warp_instructions",
        "-latency_ms",
    ),
}


def ladder(plan: Plan) -> Ladder:
    """The ladder of the plan's largest kernel."""
    uncoalesced = any(len(loop_nest(kernel, merge=False).all) > 1 for kernel in plan.kernels)
    names = ([COALESCED] if uncoalesced else []) + [VECTORISE, IN_FLIGHT, GRID_STRIDE]
    start = SIMPLEST if uncoalesced else Variant(coalesced=True)
    return Ladder(start, tuple(ELEMENTWISE[name] for name in names))
