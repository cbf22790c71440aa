"""Strategies for the loops over the steps of recurrent layers, in words."""

from __future__ import annotations

from cutegen_nb.authors.offline.fused.strategies import HOPPER
from cutegen_nb.core.strategy import Strategy, lowers

ON_CHIP = "weights-on-chip"
PREFETCH = "prefetch-step"
ASYNCHRONOUS = "asynchronous-states"


def _strategy(name: str, statement: str, effects: str) -> Strategy:
    """Build a strategy for GPUs with clusters; `effects` are counters that go down, separated by spaces."""
    return Strategy(
        name=name,
        statement=statement,
        effects=lowers(*effects.split()),
        architectures=HOPPER,
    )


ON_CHIP_STRATEGY = _strategy(
    ON_CHIP,
    "Keep the weights of the state on the chip for all steps (Diamos et al., 2016): the CTAs of a cluster "
    "divide the hidden units, each thread holds its weights in registers, and each new state goes to the "
    "shared memory of all CTAs of the cluster, which meet once a step.",
    "gmem_load_sectors latency_ms",
)

PREFETCH_STRATEGY = _strategy(
    PREFETCH,
    "Load the next step's products with the inputs before the CTAs meet, so that no step begins with a wait "
    "for global memory.",
    "latency_ms",
)

ASYNCHRONOUS_STRATEGY = _strategy(
    ASYNCHRONOUS,
    "Send the states by asynchronous stores of four, whose bytes an mbarrier of the CTA that gets them "
    "counts: a CTA waits for states alone, not for all threads of the cluster and their global stores.",
    "latency_ms",
)
