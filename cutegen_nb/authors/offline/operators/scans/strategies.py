"""Strategies for scans, in words."""

from __future__ import annotations

from cutegen_nb.core.strategy import Bound, Optimisation, Strategy, lowers

WARP = "warp-scan"
BLOCK = "cta-scan"
PREFETCH = "prefetch-chunk"
SPLIT = "split-scan"
COLUMNS = "columns-shared"


def _strategy(
    name: str,
    statement: str,
    effects: str,
    *,
    absent: tuple[Optimisation, ...] = (),
    present: tuple[Optimisation, ...] = (),
) -> Strategy:
    """Build a strategy; `effects` are counters that go down, separated by spaces."""
    return Strategy(
        name=name,
        statement=statement,
        bounds=(Bound.MEMORY, Bound.LATENCY),
        effects=lowers(*effects.split()),
        absent=absent,
        present=present,
    )


WARP_STRATEGY = _strategy(
    WARP,
    "Give each row to a warp: its lanes read 32 neighbours at a time and scan them in five exchanges through "
    "registers, so that every sector carries eight numbers instead of one.",
    "gmem_load_sectors gmem_store_sectors",
    absent=(Optimisation.COALESCED,),
)

BLOCK_STRATEGY = _strategy(
    BLOCK,
    "Give each row to a CTA in chunks of four 128-bit vectors a thread: a thread adds up its vectors, lanes "
    "scan the sums through registers, warps through one exchange in shared memory, and a running total goes "
    "from chunk to chunk.",
    "gmem_requests warp_instructions",
    absent=(Optimisation.VECTORS,),
)

PREFETCH_STRATEGY = _strategy(
    PREFETCH,
    "Load the next chunk into registers while the present one is scanned, so that memory never waits for the "
    "exchanges.",
    "latency_ms",
    absent=(Optimisation.PIPELINED,),
)

SPLIT_STRATEGY = _strategy(
    SPLIT,
    "Split each row over several CTAs, since there are too few rows to fill the GPU: a first kernel finds "
    "the total of each part, and a second one scans the parts, each from the totals before it.",
    "latency_ms",
    absent=(Optimisation.SPLIT,),
)

COLUMNS_STRATEGY = _strategy(
    COLUMNS,
    "Give 32 neighbouring columns to a CTA: lanes take columns, each warp eight elements along the scan with "
    "all loads in flight, and warps exchange their totals through shared memory.",
    "latency_ms",
    absent=(Optimisation.ROWS_SHARED,),
)
