"""Strategies for selections, in words."""

from __future__ import annotations

from cutegen_nb.core.strategy import Bound, Optimisation, Strategy, lowers

WARP = "warp-top-k"
BLOCK = "cta-top-k"


def _strategy(name: str, statement: str) -> Strategy:
    return Strategy(
        name=name,
        statement=statement,
        bounds=(Bound.MEMORY, Bound.LATENCY),
        effects=lowers("gmem_load_sectors", "latency_ms"),
        absent=(Optimisation.COALESCED,),
    )


WARP_STRATEGY = _strategy(
    WARP,
    "Give each row to a warp: its lanes load the row once, by vectors, and keep it in registers as integers "
    "in the order of the floats. In each round two reductions over the warp (redux.sync) find the best "
    "element and its position, and the lane that has it takes it out.",
)
BLOCK_STRATEGY = _strategy(
    BLOCK,
    "Give each row to a CTA, up to 16 elements a thread: they are loaded once, by vectors, and stay in "
    "registers as integers in the order of the floats. In each round warps find their best elements by "
    "redux.sync and exchange them through shared memory, with one barrier.",
)
